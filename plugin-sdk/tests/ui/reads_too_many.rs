use crawler_plugin_sdk::prelude::*;

#[derive(Extract)]
struct Title {
    #[css("h1")]
    title: String,
}

pub struct Taken;

#[plugin(reads(Title = "page.links"))]
impl Taken {
    fn root(_crawl: &mut Crawl) -> Result {
        Ok(())
    }
}

pub struct TooMany;

#[plugin(reads(
    Title = "p1",
    Title = "p2",
    Title = "p3",
    Title = "p4",
    Title = "p5",
    Title = "p6",
    Title = "p7",
    Title = "p8",
    Title = "p9",
    Title = "p10",
    Title = "p11",
    Title = "p12",
    Title = "p13",
    Title = "p14",
    Title = "p15",
    Title = "p16",
    Title = "p17",
    Title = "p18",
    Title = "p19",
    Title = "p20",
    Title = "p21",
    Title = "p22",
    Title = "p23",
    Title = "p24",
    Title = "p25",
    Title = "p26",
    Title = "p27",
    Title = "p28",
    Title = "p29",
    Title = "p30",
    Title = "p31",
    Title = "p32",
    Title = "p33",
    Title = "p34",
    Title = "p35",
    Title = "p36",
    Title = "p37",
    Title = "p38",
    Title = "p39",
    Title = "p40",
    Title = "p41",
    Title = "p42",
    Title = "p43",
    Title = "p44",
    Title = "p45",
    Title = "p46",
    Title = "p47",
    Title = "p48",
    Title = "p49",
    Title = "p50",
    Title = "p51",
    Title = "p52",
    Title = "p53",
    Title = "p54",
    Title = "p55",
    Title = "p56",
    Title = "p57",
    Title = "p58",
    Title = "p59",
    Title = "p60",
    Title = "p61",
    Title = "p62",
    Title = "p63",
    Title = "p64",
    Title = "p65",
))]
impl TooMany {
    fn root(_crawl: &mut Crawl) -> Result {
        Ok(())
    }
}

fn main() {}
