use super::*;
use proptest::prelude::*;

const BERLIN: &str = "Europe/Berlin";

fn window(days: &[u8], from: &str, to: &str, zone: &str) -> (Window, TimeZone) {
    let minutes = |text: &str| {
        let (hours, minutes) = text.split_once(':').unwrap();
        hours.parse::<u16>().unwrap() * 60 + minutes.parse::<u16>().unwrap()
    };
    let window = Window { days: days.to_vec(), from: minutes(from), to: minutes(to), zone: zone.to_owned() };
    (window, TimeZone::get(zone).unwrap())
}

fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn freeze(from: &str, to: &str, reason: &str) -> Freeze {
    Freeze { from: time(from).as_second(), to: time(to).as_second(), reason: reason.to_owned() }
}

/// What it says at a time.
fn said(now: &str, windows: &[(Window, TimeZone)], freezes: &[Freeze]) -> String {
    at(time(now), windows, freezes).words
}

#[test]
fn a_window_says_when_it_opens_and_closes_by_its_own_clock() {
    let office = [window(&[0, 1, 2, 3, 4], "09:00", "17:00", BERLIN)];
    // 2026-11-22 is a Sunday; Berlin is an hour ahead.
    assert_eq!(said("2026-11-22T20:00:00Z", &office, &[]), "closed until Monday 09:00 Europe/Berlin");
    assert_eq!(said("2026-11-23T07:59:59Z", &office, &[]), "closed until Monday 09:00 Europe/Berlin");
    assert_eq!(said("2026-11-23T08:00:00Z", &office, &[]), "open until Monday 17:00 Europe/Berlin");
    assert_eq!(said("2026-11-27T16:00:00Z", &office, &[]), "closed until Monday 09:00 Europe/Berlin");
    let opening = at(time("2026-11-23T07:59:59Z"), &office, &[]);
    assert_eq!((opening.open, opening.changes_after), (false, Some(Duration::from_secs(1))));
    assert_eq!(
        at(time("2026-11-23T08:00:00Z"), &[], &[]),
        Opening { open: true, changes_after: None, words: "open".to_owned() }
    );
}

#[test]
fn a_window_past_midnight_belongs_to_the_day_on_which_it_begins() {
    let night = [window(&[4], "22:00", "04:00", "UTC")];
    assert_eq!(said("2026-11-27T03:00:00Z", &night, &[]), "closed until Friday 22:00 UTC");
    assert_eq!(said("2026-11-28T03:59:59Z", &night, &[]), "open until Saturday 04:00 UTC");
    // On the day itself, a week ahead, the day of the week would mean today.
    assert_eq!(said("2026-11-28T04:00:00Z", &night, &[]), "closed until 2026-12-04 22:00 UTC");
    let all_day = [window(&[2], "06:00", "06:00", "UTC"), window(&[3], "06:00", "24:00", "UTC")];
    assert_eq!(said("2026-11-25T06:00:00Z", &all_day, &[]), "open until Friday 00:00 UTC");
}

// Faults: PF10
#[test]
fn a_freeze_closes_every_window_and_says_why() {
    let office = [window(&[0, 1, 2, 3, 4], "09:00", "17:00", BERLIN)];
    let holidays = [freeze("2026-12-18T10:00:00Z", "2027-01-02T00:00:00Z", "holidays")];
    assert_eq!(said("2026-12-18T09:00:00Z", &office, &holidays), "open until Friday 11:00 Europe/Berlin");
    assert_eq!(
        said("2026-12-18T10:00:00Z", &office, &holidays),
        "closed until 2027-01-04 09:00 Europe/Berlin: holidays"
    );
    assert_eq!(said("2026-12-31T00:00:00Z", &[], &holidays), "closed until Saturday 00:00 UTC: holidays");
    // Two that touch are one.
    let both = [holidays[0].clone(), freeze("2027-01-01T00:00:00Z", "2027-01-09T00:00:00Z", "inventory")];
    assert_eq!(said("2026-12-31T00:00:00Z", &[], &both), "closed until 2027-01-09 00:00 UTC: holidays");
}

// Faults: PF10
#[test]
fn an_hour_that_a_clock_skips_is_in_no_window_and_one_shown_twice_is_in_it_twice() {
    let night = [window(&[6], "02:00", "03:00", BERLIN)];
    // 2027-03-28, 02:00 becomes 03:00: that Sunday has no such hour.
    assert_eq!(said("2027-03-27T12:00:00Z", &night, &[]), "closed until 2027-04-04 02:00 Europe/Berlin");
    let part = [window(&[6], "02:30", "04:00", BERLIN)];
    assert_eq!(said("2027-03-28T00:59:59Z", &part, &[]), "closed until Sunday 03:00 Europe/Berlin");
    // 2026-10-25, 03:00 becomes 02:00.
    for now in ["2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"] {
        assert!(at(time(now), &night, &[]).open, "{now}");
    }
    assert_eq!(at(time("2026-10-25T00:00:00Z"), &night, &[]).changes_after, Some(Duration::from_secs(2 * 60 * 60)));
    let brief = [window(&[6], "02:30", "02:45", BERLIN)];
    let after = |now: &str| at(time(now), &brief, &[]).changes_after.map(|after| after.as_secs() / 60);
    let (first, between, second) = ("2026-10-25T00:30:00Z", "2026-10-25T00:45:00Z", "2026-10-25T01:30:00Z");
    assert_eq!((after(first), after(between), after(second)), (Some(15), Some(45), Some(15)));
}

#[test]
fn many_freezes_and_windows_cost_little() {
    let windows: Vec<_> = (0..20).map(|n| window(&[n % 7], "02:01", "02:02", BERLIN)).collect();
    let freezes: Vec<Freeze> = (0..20)
        .map(|n| Freeze {
            from: 1_800_000_000 + n * 1_000_000,
            to: 1_800_900_000 + n * 1_000_000,
            reason: String::new(),
        })
        .collect();
    let began = std::time::Instant::now();
    assert!(!at(Timestamp::from_second(1_800_000_000).unwrap(), &windows, &freezes).open);
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
}

/// Zones with every kind of change: an hour, half an hour, none, and at midnight.
const ZONES: [&str; 7] =
    [BERLIN, "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "America/Santiago", "Africa/Cairo", "UTC"];

fn any_window() -> impl Strategy<Value = (Window, TimeZone)> {
    let days = proptest::collection::btree_set(0_u8..7, 1..7);
    // Most changes of zones are in the first hours of a day.
    let (from, to) = (prop_oneof![0_u16..1440, 0_u16..200], prop_oneof![0_u16..=1440, 0_u16..200]);
    (days, from, to, 0..ZONES.len()).prop_map(|(days, from, to, zone)| {
        let window = Window { days: days.into_iter().collect(), from, to, zone: ZONES[zone].to_owned() };
        (window, TimeZone::get(ZONES[zone]).unwrap())
    })
}

/// The rule of windows, by the minute, as people say it.
fn is_open_by_hand(at: Timestamp, windows: &[(Window, TimeZone)], freezes: &[Freeze]) -> bool {
    if freezes.iter().any(|freeze| freeze.from <= at.as_second() && at.as_second() < freeze.to) {
        return false;
    }
    windows.is_empty()
        || windows.iter().any(|(Window { days, from, to, .. }, zone)| {
            let clock = at.to_zoned(zone.clone());
            let shown = u16::from(clock.hour().unsigned_abs()) * 60 + u16::from(clock.minute().unsigned_abs());
            let begun_today = days.contains(&(clock.weekday().to_monday_one_offset().unsigned_abs() - 1));
            let begun_yesterday =
                days.contains(&(clock.date().yesterday().unwrap().weekday().to_monday_one_offset().unsigned_abs() - 1));
            if to > from {
                begun_today && *from <= shown && shown < *to
            } else {
                (begun_today && shown >= *from) || (begun_yesterday && shown < *to)
            }
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    // Goal: it is open when the clock shows so, and nothing changes before the time that it says, at which something does. Within
    // three days, minute by minute; many of them are around a change of a zone.
    // Faults: PF10
    #[test]
    fn what_it_says_is_what_the_clocks_will_show(
        windows in proptest::collection::vec(any_window(), 0..4),
        freezes in proptest::collection::vec((0_i64..5_000, 1_i64..3_000), 0..3),
        day in prop_oneof![0_i64..365, 80..95_i64, 295..310_i64],
        minute in 0_i64..1440,
    ) {
        let start = time("2026-01-01T00:00:00Z").as_second() + day * 86_400;
        let freezes: Vec<Freeze> = freezes
            .into_iter()
            .map(|(after, long)| Freeze { from: start + after * 60, to: start + (after + long) * 60, reason: "x".to_owned() })
            .collect();
        let now = start + minute * 60;
        let moment = |second: i64| Timestamp::from_second(second).unwrap();
        let opening = at(moment(now), &windows, &freezes);
        prop_assert_eq!(opening.open, is_open_by_hand(moment(now), &windows, &freezes));
        let scanned = (1..3 * 1440).map(|minutes| now + minutes * 60);
        let changed = scanned.into_iter().find(|second| is_open_by_hand(moment(*second), &windows, &freezes) != opening.open);
        let said = opening.changes_after.map(|after| now + i64::try_from(after.as_secs()).unwrap());
        match changed {
            Some(changed) => prop_assert_eq!(said, Some(changed), "{}", opening.words),
            None => prop_assert!(said.is_none_or(|said| said >= now + 3 * 86_400), "{}", opening.words),
        }
    }
}
