//! A made-up shop whose items are crawled, whole and broken: nothing is held while it stays as it is, and a change is
//! found before a changed item passes.

use super::*;

/// Number of pages after the first bad one by which it has to be found.
const FOUND_WITHIN: usize = 50;
const KIND: &str = "book";
const HOST: &str = "shop.test:443";

/// Numbers that look random, the same for the same seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}

/// Change of a shop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Broken {
    No,
    /// The class of the title was renamed: nothing is found.
    TitleGone,
    /// The price is that of a monthly instalment.
    Instalment,
    /// The price has become a sentence.
    PriceInWords,
    /// All titles are the same.
    OneTitle,
}

/// Returns the item of a page. The shelves of the shop differ in prices and in what is known of their books, and come one
/// after the other.
fn item(page: usize, random: &mut Random, broken: Broken) -> Sample {
    let shelf = (page / 25) as u64 % 7;
    let words = 2 + random.below(5);
    let title: Vec<String> = (0..words)
        .map(|_| format!("w{}", random.below(5_000)))
        .collect();
    let cents = 800 + shelf * 500 + random.below(4_000);
    let is_rated = random.below(10) < 3 + shelf;
    let (title, price) = match broken {
        Broken::TitleGone => (
            String::new(),
            format!("£{}.{:02}", cents / 100, cents % 100),
        ),
        Broken::Instalment => (title.join(" "), format!("£0.{:02}", cents / 60 % 100)),
        Broken::PriceInWords => (title.join(" "), "Ask us for a price".to_owned()),
        Broken::OneTitle => ("All books".to_owned(), format!("£{}.00", cents / 100)),
        Broken::No => (
            title.join(" "),
            format!("£{}.{:02}", cents / 100, cents % 100),
        ),
    };
    let rating = if is_rated {
        (1 + random.below(5)).to_string()
    } else {
        "null".to_owned()
    };
    let json = format!(
        r#"{{"title": "{title}", "price": "{price}", "rating": {rating}, "url": "/books/{page}.html", "currency": "GBP"}}"#
    );
    Sample::of(&json)
}

/// Returns the profile of a good run over so many pages.
fn good_run(n_pages: usize, random: &mut Random) -> Profile {
    let mut profile = Profile::default();
    for page in 0..n_pages {
        profile.add(KIND, HOST, &item(page, random, Broken::No));
    }
    profile.after(&Profile::default())
}

/// Result of a run that is judged.
#[derive(Debug, Default)]
struct Judged {
    passed: Vec<usize>,
    held: Vec<usize>,
    departure: Option<Departure>,
    /// Number of pages that had come when the first was held.
    found_at: Option<usize>,
}

/// Judges a run over so many pages, of which those from `broken_from` on are broken.
fn judge(
    baseline: &Profile,
    n_pages: usize,
    (broken, broken_from): (Broken, usize),
    random: &mut Random,
) -> (Judged, Profile) {
    let mut watch = Watch::new(
        baseline.clone(),
        Profile::default(),
        Sensitivity::Normal,
        &[],
    );
    let mut judged = Judged::default();
    let note = |judged: &mut Judged, verdict: Verdict<usize>, n: usize| match verdict.departure {
        Some(departure) => {
            judged.found_at.get_or_insert(n);
            judged.departure.get_or_insert(departure);
            judged.held.extend(verdict.pages);
        }
        None => judged.passed.extend(verdict.pages),
    };
    for page in 0..n_pages {
        let broken = if page < broken_from {
            Broken::No
        } else {
            broken
        };
        assert!(watch.is_judged(KIND, HOST));
        watch.add(page, KIND, HOST, item(page, random, broken), 0);
        while let Some(verdict) = watch.next(0, false) {
            note(&mut judged, verdict, page + 1);
        }
        assert!(watch.n_waiting() < WINDOW);
    }
    while let Some(verdict) = watch.next(0, true) {
        note(&mut judged, verdict, n_pages);
    }
    assert_eq!(watch.n_waiting(), 0);
    let profile = watch.run().after(baseline);
    (judged, profile)
}

#[test]
fn a_change_is_found_before_a_changed_item_passes() {
    let broken = [
        Broken::TitleGone,
        Broken::Instalment,
        Broken::PriceInWords,
        Broken::OneTitle,
    ];
    for seed in 0..100 {
        let mut random = Random(seed);
        let baseline = good_run(200 + random.below(400) as usize, &mut random);
        let broken_from = random.below(400) as usize;
        let broken = broken[seed as usize % broken.len()];
        let (judged, _) = judge(&baseline, 500, (broken, broken_from), &mut random);
        let first_passed_bad = judged.passed.iter().find(|page| **page >= broken_from);
        assert_eq!(
            first_passed_bad, None,
            "seed {seed}: {broken:?} from {broken_from}"
        );
        let found_at = judged.found_at.expect("the change is found");
        let n_bad = found_at - broken_from;
        assert!(
            n_bad <= FOUND_WITHIN,
            "seed {seed}: {broken:?} after {n_bad} pages"
        );
        assert_eq!(judged.passed.len() + judged.held.len(), 500);
    }
}

/// Largest number of 1 500 unchanged runs that may be held. The shelves of the shop differ much, and a window may be an
/// unlikely one.
const FALSE_ALARMS_MAX: usize = 1;

#[test]
fn unchanged_runs_raise_hardly_an_alarm() {
    let mut alarms = Vec::new();
    for seed in 0..75 {
        let mut random = Random(seed);
        let n_pages = 60 + random.below(400) as usize;
        let mut baseline = good_run(n_pages, &mut random);
        for run in 0..20 {
            let n_pages = n_pages + random.below(20) as usize;
            let (judged, next) = judge(&baseline, n_pages, (Broken::No, n_pages), &mut random);
            match judged.departure {
                None => assert_eq!(judged.passed, (0..n_pages).collect::<Vec<_>>()),
                Some(departure) => alarms.push((seed, run, n_pages, departure)),
            }
            baseline = next;
        }
    }
    assert!(alarms.len() <= FALSE_ALARMS_MAX, "{alarms:#?}");
}

#[test]
fn a_change_in_the_last_pages_is_found() {
    let mut random = Random(1);
    let baseline = good_run(300, &mut random);
    let (judged, _) = judge(&baseline, 300, (Broken::TitleGone, 288), &mut random);
    assert!(judged.passed.iter().all(|page| *page < 288), "{judged:?}");
}

#[test]
fn windows_that_end_early_are_judged_with_the_pages_before_them() {
    for (seed, broken) in [(1, Broken::TitleGone), (2, Broken::PriceInWords)] {
        let mut random = Random(seed);
        let baseline = good_run(300, &mut random);
        let new = Profile::default();
        let mut watch = Watch::new(baseline, new, Sensitivity::Normal, &[]);
        let mut n_passed_bad = 0;
        for page in 0..100 {
            let broken = if page < 50 { Broken::No } else { broken };
            watch.add(page, KIND, HOST, item(page, &mut random, broken), 0);
            // The crawl waits for every second page.
            if page % 2 == 1 {
                let verdict = watch.next(0, true).unwrap();
                let is_good = verdict.departure.is_none();
                n_passed_bad += verdict
                    .pages
                    .iter()
                    .filter(|page| is_good && **page >= 50)
                    .count();
            }
        }
        assert!(n_passed_bad <= 8, "{broken:?}: {n_passed_bad}");
        assert_eq!(watch.next(0, true), None);
    }
}

#[test]
fn a_departure_tells_what_was_and_what_is() {
    let mut random = Random(7);
    let baseline = good_run(300, &mut random);
    for (broken, field, departs) in [
        (Broken::TitleGone, "title", Departs::Presence),
        (Broken::Instalment, "price", Departs::Number),
        (Broken::PriceInWords, "price", Departs::Type),
    ] {
        let (judged, _) = judge(&baseline, 100, (broken, 0), &mut random);
        let departure = judged.departure.unwrap();
        assert_eq!(
            (departure.field.as_str(), departure.departs),
            (field, departs)
        );
        assert!(
            departure
                .to_string()
                .starts_with(&format!("field {field}: ")),
            "{departure}"
        );
    }
    let (judged, _) = judge(&baseline, 100, (Broken::TitleGone, 0), &mut random);
    assert_eq!(
        judged.departure.unwrap().to_string(),
        "field title: missing in 40 of 40 items, before missing in 0 of 300 items"
    );
}

#[test]
fn a_stored_profile_is_read_back() {
    let mut random = Random(3);
    let profile = good_run(150, &mut random);
    let read = Profile::read(&profile.stored()).unwrap();
    assert_eq!(read.stored(), profile.stored());
    assert_eq!(Profile::read(b"{"), None);
}

#[test]
fn a_profile_has_so_many_hosts_kinds_and_bytes_at_most() {
    let sample = Sample::of(r#"{"a": 1}"#);
    let mut profile = Profile::default();
    for n in 0..500 {
        for _page in 0..=n % 50 {
            profile.add(KIND, &format!("{n}.test:80"), &sample);
        }
        profile.add(&format!("kind {n}"), HOST, &sample);
    }
    assert!(profile.groups().len() <= MAX_GROUPS + MAX_KINDS);
    let stored = profile.after(&Profile::default());
    let groups = stored.groups().iter();
    let of_kind = groups.filter(|(name, _)| name.kind == KIND);
    let hosts: Vec<&str> = of_kind.map(|(name, _)| name.host.as_str()).collect();
    assert_eq!(hosts.len(), MAX_HOSTS + 1);
    assert_eq!(hosts[0], "", "the rest together");
    // A host without a group of its own is judged by the rest.
    assert_eq!(stored.judges(KIND, "none.test:80").unwrap().host, "");
    let (mut large, mut random) = (Profile::default(), Random(5));
    for page in 0..MAX_GROUPS * 40 {
        let fields = (0..MAX_FIELDS).map(|n| format!("\"{n:0>120}\": \"{}\"", random.next()));
        let json = format!("{{{}}}", fields.collect::<Vec<_>>().join(","));
        large.add(
            KIND,
            &format!("{}.test", page % MAX_GROUPS),
            &Sample::of(&json),
        );
    }
    let stored = large.stored();
    assert!(stored.len() <= MAX_BYTES + MAX_GROUPS + 16);
    let n_groups = Profile::read(&stored).unwrap().groups().len();
    assert!((1..MAX_GROUPS).contains(&n_groups), "{n_groups}");
}

#[test]
fn too_little_is_not_judged() {
    let mut random = Random(9);
    let small = good_run(MIN_PAGES as usize - 1, &mut random);
    let judges = |profile: &Profile, sensitivity| {
        let profile = profile.clone();
        let watch: Watch<usize> = Watch::new(profile, Profile::default(), sensitivity, &[]);
        watch.is_judged(KIND, HOST)
    };
    assert!(!judges(&small, Sensitivity::Tight));
    let enough = good_run(MIN_PAGES as usize, &mut random);
    assert!(judges(&enough, Sensitivity::Loose));
    assert!(!judges(&enough, Sensitivity::Off));
    assert!(!judges(&Profile::default(), Sensitivity::Tight));
}

#[test]
fn a_field_that_the_schema_no_longer_lists_is_not_judged() {
    let mut random = Random(11);
    let baseline = good_run(200, &mut random);
    for (properties, is_held) in [
        (
            r#"{"price": {}, "rating": {}, "url": {}, "currency": {}}"#,
            false,
        ),
        (r#"{"title": {}, "price": {}, "isbn": {}}"#, true),
    ] {
        let schema = crate::plugin::Schema {
            name: KIND.to_owned(),
            json_schema: format!(r#"{{"properties": {properties}}}"#),
        };
        let mut watch = Watch::new(
            baseline.clone(),
            Profile::default(),
            Sensitivity::Normal,
            &[schema],
        );
        for page in 0..WINDOW {
            watch.add(
                page,
                KIND,
                HOST,
                item(page, &mut random, Broken::TitleGone),
                0,
            );
        }
        let verdict = watch.next(0, false).unwrap();
        assert_eq!(verdict.departure.is_some(), is_held, "{properties}");
    }
}

#[test]
fn what_follows_held_items_is_held() {
    let mut random = Random(13);
    let baseline = good_run(200, &mut random);
    let group = baseline.judges(KIND, HOST).unwrap().clone();
    let new = || {
        Watch::new(
            baseline.clone(),
            Profile::default(),
            Sensitivity::Normal,
            &[],
        )
    };
    let mut watch = new();
    for page in 0..WINDOW {
        watch.add(
            page,
            KIND,
            HOST,
            item(page, &mut random, Broken::TitleGone),
            0,
        );
    }
    let held = watch.next(0, false).unwrap();
    assert_eq!(held.pages.len(), WINDOW);
    let departure = held.departure.unwrap();
    // Good ones are held, too, until somebody decides; also after the next opening.
    let mut later = new();
    later.hold(group, departure.clone());
    for watch in [&mut watch, &mut later] {
        watch.add(0, KIND, HOST, item(0, &mut random, Broken::No), 0);
        let held = watch.next(0, false).unwrap();
        assert_eq!(held.departure, Some(departure.clone()));
    }
    // A profile without the group judges none of it.
    let mut accepted = baseline.clone();
    accepted.forget(&held.group);
    assert_eq!(accepted.judges(KIND, HOST), None);
}

#[test]
fn pages_of_an_earlier_run_say_nothing_of_this_one() {
    let mut random = Random(14);
    let baseline = good_run(200, &mut random);
    let group = baseline.judges(KIND, HOST).unwrap().clone();
    let new = Profile::default();
    let mut watch: Watch<usize> = Watch::new(baseline, new, Sensitivity::Normal, &[]);
    let mut earlier = watch.for_earlier();
    for page in 0..30 {
        let bad = item(page, &mut random, Broken::TitleGone);
        earlier.add(page, KIND, HOST, bad, 0);
    }
    let departure = earlier.next(0, true).unwrap().departure.unwrap();
    for page in 0..WINDOW {
        watch.add(page, KIND, HOST, item(page, &mut random, Broken::No), 0);
    }
    assert_eq!(watch.next(0, false).unwrap().departure, None);
    // What this run holds says nothing of an earlier one either.
    watch.hold(group, departure);
    let mut earlier = watch.for_earlier();
    for page in 0..WINDOW {
        earlier.add(page, KIND, HOST, item(page, &mut random, Broken::No), 0);
    }
    let verdict = earlier.next(0, true).unwrap();
    assert_eq!((verdict.departure, verdict.pages.len()), (None, WINDOW));
}

/// Returns the profile of a run over these items, in their order.
fn learned<'a>(items: impl IntoIterator<Item = &'a Sample>) -> Profile {
    let mut run = Profile::default();
    items
        .into_iter()
        .for_each(|sample| run.add(KIND, HOST, sample));
    run
}

/// Judges a run over these items, in their order, and returns the first departure.
fn first_departure(baseline: &Profile, items: &[Sample]) -> Option<Departure> {
    let new = Profile::default();
    let mut watch = Watch::new(baseline.clone(), new, Sensitivity::Normal, &[]);
    let mut verdicts = Vec::new();
    for (page, sample) in items.iter().enumerate() {
        watch.add(page, KIND, HOST, sample.clone(), 0);
        verdicts.extend(std::iter::from_fn(|| watch.next(0, false)));
    }
    verdicts.extend(std::iter::from_fn(|| watch.next(0, true)));
    let mut departures = verdicts.into_iter().map(|verdict| verdict.departure);
    departures.find_map(|departure| departure)
}

#[test]
fn an_unchanged_order_is_no_departure() {
    let ranks = |n: usize| -> Vec<Sample> {
        let json = (1..=n).map(|rank| format!("{{\"rank\": {rank}, \"left\": {}}}", n - rank));
        json.map(|json| Sample::of(&json)).collect()
    };
    for n in [60, 100, 250, 600, 1_000, 5_000] {
        let baseline = learned(&ranks(n)).after(&Profile::default());
        // The site may have grown since.
        for n_now in [n, n + 1, n + n / 10] {
            let departure = first_departure(&baseline, &ranks(n_now));
            assert_eq!(departure, None, "{n} and now {n_now}");
        }
    }
    let noted = |n_noted: usize, n: usize| -> Vec<Sample> {
        let json = (0..n).map(|page| match page < n_noted {
            true => r#"{"title": "x", "note": "a few words"}"#,
            false => r#"{"title": "x"}"#,
        });
        json.map(Sample::of).collect()
    };
    for (n_noted, n) in [(20, 400), (40, 500), (40, 2_000), (60, 1_000), (100, 2_000)] {
        let baseline = learned(&noted(n_noted, n)).after(&Profile::default());
        let departure = first_departure(&baseline, &noted(n_noted, n));
        assert_eq!(departure, None, "{n_noted} of {n}");
    }
}

#[test]
fn a_few_odd_pages_do_not_hide_a_field_that_is_gone() {
    let titled = |page: usize| match (100..120).contains(&page) {
        true => Sample::of(r#"{"url": "/"}"#),
        false => Sample::of(r#"{"url": "/", "title": "a title"}"#),
    };
    let items: Vec<Sample> = (0..500).map(titled).collect();
    let baseline = learned(&items).after(&Profile::default());
    assert_eq!(first_departure(&baseline, &items), None);
    let gone: Vec<Sample> = (100..120).cycle().take(40).map(titled).collect();
    let departure = first_departure(&baseline, &gone).unwrap();
    assert_eq!(departure.field, "title");
}

#[test]
fn what_is_held_stays_held_without_a_profile() {
    let mut random = Random(16);
    let baseline = good_run(100, &mut random);
    let bad: Vec<Sample> = (0..40)
        .map(|page| item(page, &mut random, Broken::TitleGone))
        .collect();
    let departure = first_departure(&baseline, &bad).unwrap();
    for host in [HOST, ""] {
        let new = Profile::default;
        let mut watch = Watch::new(new(), new(), Sensitivity::Normal, &[]);
        assert!(!watch.is_judged(KIND, HOST));
        let group = GroupName {
            kind: KIND.to_owned(),
            host: host.to_owned(),
        };
        watch.hold(group.clone(), departure.clone());
        assert!(watch.is_judged(KIND, HOST));
        watch.add(1, KIND, HOST, item(1, &mut random, Broken::No), 0);
        let verdict = watch.next(0, false).unwrap();
        let held = (verdict.group, verdict.departure);
        assert_eq!(held, (group.clone(), Some(departure.clone())));
        // A host that was released is not held with the others.
        let mut baseline = new();
        baseline.forget(&GroupName {
            host: HOST.to_owned(),
            ..group.clone()
        });
        let mut watch: Watch<usize> = Watch::new(baseline, new(), Sensitivity::Normal, &[]);
        watch.hold(group.clone(), departure.clone());
        assert_eq!(watch.is_judged(KIND, HOST), host == HOST);
        assert!(watch.is_judged(KIND, "other.test:443") == host.is_empty());
    }
}

#[test]
fn a_dropped_group_leaves_the_profile_of_the_run_before() {
    let mut random = Random(17);
    let baseline = good_run(500, &mut random);
    let group = baseline.judges(KIND, HOST).unwrap().clone();
    let mut run = Profile::default();
    for page in 0..60 {
        run.add(KIND, HOST, &item(page, &mut random, Broken::No));
    }
    // Also what is learned after the decision, of a run that has seen nothing before.
    for mut run in [run.clone(), Profile::default()] {
        run.note_dropped(&group);
        let mut run = Profile::read(&run.stored()).unwrap();
        for page in 0..60 {
            run.add(KIND, HOST, &item(page, &mut random, Broken::No));
        }
        let next = run.after_run(&baseline, [].into_iter());
        assert_eq!(next.groups()[0].1.shape.n, 500);
        assert_eq!(next.dropped, [].into());
    }
}

#[test]
fn first_blocks_make_way_for_groups() {
    let mut run = Profile::default();
    let mut random = Random(18);
    for n in 0..40 * MAX_HOSTS {
        let fields = (0..38).map(|field| {
            format!(
                "\"a rather long name of field {field}\": {}",
                random.below(1 << 50)
            )
        });
        let json = format!("{{{}}}", fields.collect::<Vec<_>>().join(","));
        run.add(KIND, &format!("{:02}.test:80", n % 30), &Sample::of(&json));
    }
    let full = serde_json::to_vec(&run).unwrap();
    assert!(full.len() > MAX_BYTES, "{}", full.len());
    let stored = Profile::read(&run.stored()).unwrap();
    assert_eq!(stored.groups().len(), 30);
    let after = |profile: &Profile| profile.after(&Profile::default()).stored();
    assert_eq!(after(&stored), after(&run));
}

#[test]
fn released_hosts_without_a_group_of_their_own_are_learned_anew() {
    let (old, new) = (Sample::of(r#"{"a": 1}"#), Sample::of(r#"{"a": "text"}"#));
    let run_of = |sample: &Sample, n_hosts: usize| {
        let mut run = Profile::default();
        for n in 0..n_hosts {
            (0..MIN_PAGES).for_each(|_| run.add(KIND, &format!("{n:02}.test:80"), sample));
        }
        run
    };
    let mut baseline = run_of(&old, 30).after(&Profile::default());
    let small = (0..30).map(|n| format!("{n:02}.test:80"));
    let small = small.filter(|host| {
        baseline
            .judges(KIND, host)
            .is_some_and(|name| name.host.is_empty())
    });
    let small: Vec<String> = small.collect();
    assert_eq!(small.len(), 30 - MAX_HOSTS);
    let others = baseline.judges(KIND, &small[0]).unwrap().clone();
    // A run has learned the old look of the small hosts, and then holds them.
    let mut run = run_of(&old, 30);
    let held = run.clone().after_run(&baseline, [&others].into_iter());
    let n_others = |profile: &Profile| profile.groups()[0].1.shape.n;
    assert_eq!(
        n_others(&held),
        n_others(&baseline),
        "nothing is learned of what is held"
    );
    baseline.note_released(&mut run, &others);
    for host in &small {
        assert_eq!(baseline.judges(KIND, host), None);
        (0..MIN_PAGES).for_each(|_| run.add(KIND, host, &new));
    }
    let next = run.after_run(&baseline, [].into_iter());
    for host in &small {
        let (_, group) = next.group(KIND, host).unwrap();
        let types = group.shape.types_of("a");
        assert_eq!(
            types[1..].iter().filter(|n| **n > 0).count(),
            1,
            "{host}: {types:?}"
        );
    }
}

#[test]
fn a_forgotten_host_is_not_judged_by_the_others() {
    let sample = Sample::of(r#"{"a": 1}"#);
    let mut profile = Profile::default();
    for n in 0..50 {
        (0..MIN_PAGES).for_each(|_| profile.add(KIND, &format!("{n}.test:80"), &sample));
    }
    let mut profile = profile.after(&Profile::default());
    let group = GroupName {
        kind: KIND.to_owned(),
        host: "0.test:80".to_owned(),
    };
    assert!(profile.judges(KIND, &group.host).is_some());
    profile.forget(&group);
    assert_eq!(profile.judges(KIND, &group.host), None);
    assert_eq!(profile.judges(KIND, "none.test:80").unwrap().host, "");
    // Nor in the next run, and after a profile was stored.
    let next = Profile::default().after(&Profile::read(&profile.stored()).unwrap());
    assert_eq!(next.judges(KIND, &group.host), None);
    let mut run = Profile::default();
    (0..MIN_PAGES).for_each(|_| run.add(KIND, &group.host, &sample));
    let learned = run.after(&next);
    assert_eq!(learned.judges(KIND, &group.host), Some(&group));
}

#[test]
fn a_field_is_not_missing_for_lack_of_room() {
    // Each item has many fields of its own, and all but the first have a title.
    let item = |page: usize, n_fields: usize| {
        let own = (1..n_fields).map(|n| format!("\"a{page}-{n}\": 1"));
        let own: Vec<String> = own.collect();
        let last = if page == 0 { "zero" } else { "title" };
        Sample::of(&format!("{{{}, \"{last}\": \"x\"}}", own.join(",")))
    };
    let mut profile = Profile::default();
    for _page in 0..100 {
        profile.add(KIND, HOST, &Sample::of(r#"{"title": "x"}"#));
    }
    let baseline = profile.after(&Profile::default());
    for n_fields in [MAX_FIELDS, MAX_FIELDS + 1] {
        let new = Profile::default();
        let mut watch = Watch::new(baseline.clone(), new, Sensitivity::Tight, &[]);
        for page in 0..WINDOW {
            watch.add(page, KIND, HOST, item(page, n_fields), 0);
        }
        assert_eq!(watch.next(0, false).unwrap().departure, None, "{n_fields}");
    }
}

#[test]
fn a_run_that_holds_items_leaves_the_profile_of_the_run_before() {
    let mut random = Random(15);
    let baseline = good_run(100, &mut random);
    let group = baseline.judges(KIND, HOST).unwrap().clone();
    let mut run = Profile::default();
    for page in 0..60 {
        run.add(KIND, HOST, &item(page, &mut random, Broken::No));
    }
    let next = run.clone().after_run(&baseline, [&group].into_iter());
    assert_eq!(next.stored(), baseline.after(&Profile::default()).stored());
    let n_items = |profile: &Profile| profile.groups()[0].1.shape.n;
    assert_eq!(n_items(&run.after_run(&baseline, [].into_iter())), 60);
    // A run that has seen little adds to what was known.
    let mut small = Profile::default();
    small.add(KIND, HOST, &item(0, &mut random, Broken::No));
    assert_eq!(n_items(&small.after_run(&baseline, [].into_iter())), 101);
}

#[test]
fn pages_do_not_wait_longer_than_some_minutes() {
    let mut random = Random(19);
    let baseline = good_run(100, &mut random);
    let mut watch = Watch::new(baseline, Profile::default(), Sensitivity::Normal, &[]);
    let max_wait = MAX_WAIT.as_millis() as u64;
    assert_eq!(watch.due_at(), None);
    for now in [5, 6] {
        watch.add(now, KIND, HOST, item(0, &mut random, Broken::No), now);
    }
    assert_eq!(watch.due_at(), Some(5 + max_wait));
    assert_eq!(watch.next(4 + max_wait, false), None);
    let verdict = watch.next(5 + max_wait, false).unwrap();
    assert_eq!((verdict.pages, verdict.departure), (vec![5, 6], None));
}

#[test]
fn items_wait_for_nothing_once_the_setting_is_off() {
    let mut random = Random(21);
    let baseline = good_run(100, &mut random);
    let mut watch = Watch::new(baseline, Profile::default(), Sensitivity::Normal, &[]);
    for page in 0..WINDOW {
        watch.add(
            page,
            KIND,
            HOST,
            item(page, &mut random, Broken::TitleGone),
            0,
        );
    }
    watch.set_sensitivity(Sensitivity::Off);
    assert_eq!(watch.next(0, true).unwrap().departure, None);
    assert!(!watch.is_judged(KIND, HOST));
}

#[test]
fn nothing_is_judged_unless_that_is_asked_for() {
    let settings = crate::settings::CrawlSettings::default();
    assert_eq!(settings.drift(), Sensitivity::Off);
}

#[test]
fn words_of_the_setting_are_read_back() {
    for sensitivity in Sensitivity::ALL {
        assert_eq!(sensitivity.to_string().parse(), Ok(sensitivity));
    }
    let error = "high".parse::<Sensitivity>().unwrap_err();
    assert_eq!(error, "takes off, loose, normal or tight, not \"high\"");
}
