use crawler_plugin_sdk::prelude::*;

#[derive(Extract)]
struct Article {
    #[css("time", format = "%d %B")]
    no_year: Date,
    #[css("time", format = "%d.%m.%Y %Q")]
    unknown: Option<Date>,
    #[css("time", format = "published")]
    nothing: Vec<Date>,
    #[css("time", format = "%d.%m.%Y %H:%M")]
    no_offset: DateTime,
    #[css("time", format = "%d.%m.%Y %H:%M %z", offset = "+01:00")]
    two_offsets: DateTime,
    #[css("time", format = "%d.%m.%Y", offset = "+01:00")]
    no_time: DateTime,
    #[css("time", format = "%d.%m.%Y %I:%M", offset = "+01:00")]
    no_half: DateTime,
    #[css("time", offset = "CET")]
    no_number: DateTime,
    #[css("time", offset = "+01:00")]
    day: Date,
    #[css("time", format = "%Y")]
    year: u32,
    #[css("time", format = "%Y-%m-%d", with = day)]
    two_ways: Date,
    #[css("time", format = "%Y-%m-%d", format = "%F")]
    twice: Date,
    #[css("time", format = "%d.%m.%Y %H:%M %Z", offset = "+01:00")]
    zone: DateTime,
    #[css("time", present, format = "%Y")]
    is_there: bool,
}

fn main() {}
