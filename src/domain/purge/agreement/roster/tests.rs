use super::*;
use crate::bounds::policy::Policy;

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_millis(seconds * 1_000)
}

fn names(names: &[&str]) -> BTreeSet<Member> {
    names.iter().map(|name| Member::from(*name)).collect()
}

fn at_place(place: &str) -> Stands {
    Stands { place: place.to_owned(), ..Stands::default() }
}

fn beat(member: &str, origin: &str, at_ms: i64) -> Heartbeat {
    Heartbeat { member: member.into(), origin: origin.into(), at_ms, ..Heartbeat::default() }
}

fn servers(distinct: usize) -> Servers {
    Servers { distinct, ..Servers::default() }
}

fn unidentified(distinct: usize) -> Servers {
    Servers { unidentified: ["redis-b:6379".to_owned()].into(), ..servers(distinct) }
}

fn roster(configured: &[&str], pin: Option<(&[&str], usize)>) -> Roster {
    let pin = pin.map(|(members, of)| Pin { members: names(members), of, ..Pin::default() });
    Roster::new("eu-1".into(), "o1".into(), names(configured), settings(&Policy::default(), false), pin)
}

fn hold(roster: &Roster, seconds: u64, servers: &Servers) -> String {
    roster.standing(at(seconds), servers).hold.map(|hold| hold.words).unwrap_or_default()
}

#[test]
fn members_are_learnt_pinned_and_stay() {
    let mut roster = roster(&[], None);
    assert_eq!(hold(&roster, 0, &servers(3)), "1 of 3 members are known: eu-1; 2 have not been heard from");
    roster.hear(at(1), 0, beat("eu-2", "o2", 1));
    let words = "2 of 3 members are known: eu-1, eu-2; the third has not been heard from";
    assert_eq!(hold(&roster, 1, &servers(3)), words);
    assert_eq!(roster.wanted_pin(at(1), &servers(3)), None);
    roster.hear(at(2), 0, beat("us-1", "o3", 1));
    let pin = roster.wanted_pin(at(2), &servers(3)).unwrap();
    assert_eq!(pin, Pin { members: names(&["eu-1", "eu-2", "us-1"]), of: 3, ..Pin::default() });
    assert_eq!(hold(&roster, 2, &servers(3)), "the members are being written to the ledger");
    roster.pinned(Some(pin));
    // Silence is no reason to go on without a member, nor one to stop.
    assert_eq!(roster.standing(at(900), &servers(3)).hold, None);
    assert_eq!(roster.standing(at(900), &servers(3)).members.len(), 3);
    assert_eq!(roster.silence(at(900), &"us-1".into()).unwrap(), "has not been heard from for more than 10 minutes");
    assert_eq!(roster.wanted_pin(at(900), &servers(3)), None);
}

#[test]
fn another_number_of_servers_makes_the_members_unknown() {
    let mut roster = roster(&[], Some((&["eu-1", "eu-2"], 2)));
    assert_eq!(hold(&roster, 0, &servers(2)), "");
    assert!(hold(&roster, 0, &servers(3)).contains("2 of 3 members are known: eu-1, eu-2; the third"));
    roster.hear(at(1), 0, beat("eu-2", "o2", 1));
    roster.hear(at(1), 0, beat("us-1", "o3", 1));
    assert_eq!(roster.wanted_pin(at(1), &servers(3)).unwrap().of, 3);
}

// Faults: D5
#[test]
fn a_group_that_has_lost_servers_from_its_configuration_holds_until_a_person_makes_it_smaller() {
    let three: &[&str] = &["eu-1", "eu-2", "us-1"];
    for configured in [&[][..], &["eu-1", "eu-2"]] {
        // One of two remotes: the other members report, as many as servers are left.
        let mut roster = roster(configured, Some((three, 3)));
        roster.hear(at(1), 0, beat("eu-2", "o2", 1));
        let words = hold(&roster, 1, &servers(2));
        assert!(
            words.starts_with("the ledger has 3 members (eu-1, eu-2, us-1), and 2 different Redis servers are"),
            "{words}"
        );
        assert!(
            words.contains("REMOTE_REDIS_HOSTS") && words.contains("group forget") && words.contains("group leave")
        );
        assert_eq!(roster.wanted_pin(at(1), &servers(2)), None);
        let pin = roster.pin().unwrap().without(&names(&["us-1"]));
        roster.pinned(Some(pin));
        let pin = roster.wanted_pin(at(2), &servers(2)).unwrap();
        assert_eq!((&pin.members, pin.of, &pin.forgotten), (&names(&["eu-1", "eu-2"]), 2, &names(&["us-1"])));
    }
    // All of them, with our own and without.
    for (left, words) in
        [(servers(1), "and 1 Redis server is configured here"), (servers(0), "and no Redis is configured here")]
    {
        let mut roster = roster(&[], Some((three, 3)));
        assert!(hold(&roster, 1, &left).contains(words), "{}", hold(&roster, 1, &left));
        assert_eq!(roster.wanted_pin(at(1), &left), None);
        // As `allclear group leave` writes it, and as two times `forget` does.
        for of in [1, 3] {
            roster.pinned(Some(Pin {
                members: names(&["eu-1"]),
                of,
                forgotten: names(&["eu-2", "us-1"]),
                ..Pin::default()
            }));
            if let Some(pin) = roster.wanted_pin(at(2), &left) {
                roster.pinned(Some(pin));
            }
            assert_eq!((hold(&roster, 2, &left).as_str(), roster.pin().unwrap().members.len()), ("", 1), "of {of}");
        }
    }
}

#[test]
fn a_member_that_is_silent_while_others_come_is_not_dropped() {
    let mut two = roster(&[], Some((&["eu-1", "eu-2"], 2)));
    two.hear(at(1), 0, beat("us-1", "o3", 1));
    two.hear(at(1), 0, beat("ap-1", "o4", 1));
    assert_eq!(two.wanted_pin(at(1), &servers(3)), None);
    assert!(hold(&two, 1, &servers(3)).starts_with("more members than servers: ap-1, eu-1, eu-2, us-1"));
    // A member that is named no more has to be forgotten too.
    let named = roster(&["ap-1", "eu-1"], Some((&["eu-1", "eu-2"], 2)));
    assert_eq!(named.wanted_pin(at(1), &servers(2)), None);
    let words = hold(&named, 1, &servers(2));
    assert!(
        words.starts_with("the ledger has eu-2 among the members, and group.members here does not name it"),
        "{words}"
    );
}

#[test]
fn a_name_that_is_heard_and_not_configured_is_named_as_what_is_in_the_way() {
    // The recipe for a rename, in a cluster whose own group.members still has the old name.
    let mut other = roster(&["eu-1", "eu-2", "us-1"], None);
    other.pinned(Some(Pin { members: names(&["eu-1", "eu-2"]), of: 3, forgotten: names(&["us-1"]), ..Pin::default() }));
    other.hear(at(1), 0, Heartbeat { stands: at_place("redis-c:6379"), ..beat("us-east", "o3", 1) });
    assert_eq!(other.wanted_pin(at(1), &servers(3)), None);
    let words = hold(&other, 1, &servers(3));
    assert!(
        words.starts_with("us-east (whose own Redis is redis-c:6379) is heard from, and group.members here"),
        "{words}"
    );
}

#[test]
fn a_server_that_is_away_at_the_start_does_not_undo_the_pin() {
    let pinned = roster(&[], Some((&["eu-1", "eu-2", "us-1"], 3)));
    assert_eq!(hold(&pinned, 0, &unidentified(2)), "");
    assert!(hold(&pinned, 0, &unidentified(3)).is_empty(), "it may be one of the three under another name");
    assert!(!hold(&pinned, 0, &unidentified(1)).is_empty());
    let untried = Servers { untried: true, ..unidentified(2) };
    assert_eq!(hold(&pinned, 0, &untried), "the group's servers are being asked who they are");
    let unpinned = roster(&[], None);
    assert!(hold(&unpinned, 0, &unidentified(2)).contains("redis-b:6379 has not said which server it is"));
}

#[test]
fn a_forgotten_member_is_none_until_the_number_of_servers_changes() {
    for configured in [&[][..], &["eu-1", "eu-2", "us-1"]] {
        let mut roster = forgot_us_1(configured);
        roster.hear(at(1), 0, beat("us-1", "o3", 1));
        let standing = roster.standing(at(1), &servers(3));
        assert_eq!((standing.hold, standing.members), (None, names(&["eu-1", "eu-2"])));
    }
}

fn forgot_us_1(configured: &[&str]) -> Roster {
    let mut roster = roster(configured, None);
    roster.pinned(Some(Pin {
        members: names(&["eu-1", "eu-2"]),
        of: 3,
        forgotten: names(&["us-1"]),
        ..Pin::default()
    }));
    roster
}

#[test]
fn whoever_takes_the_place_of_a_forgotten_member_is_waited_for() {
    // Known by its name in the configuration, before its first beat.
    let named = forgot_us_1(&["ap-1", "eu-1", "eu-2"]);
    assert_eq!(hold(&named, 0, &servers(3)), "the members are being written to the ledger");
    assert_eq!(named.wanted_pin(at(0), &servers(3)).unwrap().members, names(&["ap-1", "eu-1", "eu-2"]));
    // Or by its beats, also while another member is silent.
    let mut learnt = forgot_us_1(&[]);
    assert_eq!(hold(&learnt, 0, &servers(3)), "");
    learnt.hear(at(1), 0, beat("ap-1", "o4", 1));
    assert!(!hold(&learnt, 1, &servers(3)).is_empty());
    let pin = learnt.wanted_pin(at(1), &servers(3)).unwrap();
    let forgotten = names(&["us-1"]);
    assert_eq!(pin, Pin { members: names(&["ap-1", "eu-1", "eu-2"]), of: 3, forgotten, ..Pin::default() });
    learnt.pinned(Some(pin));
    assert_eq!(hold(&learnt, 1, &servers(3)), "");
}

#[test]
fn a_newcomer_takes_nobodys_place_who_is_only_silent() {
    let mut roster = roster(&[], Some((&["eu-1", "eu-2", "us-1"], 3)));
    roster.hear(at(900), 0, beat("eu-2", "o2", 1));
    roster.hear(at(900), 0, beat("ap-1", "o4", 1));
    assert_eq!(roster.wanted_pin(at(900), &servers(3)), None);
    assert!(hold(&roster, 900, &servers(3)).starts_with("more members than servers: ap-1, eu-1, eu-2, us-1, and 3"));
}

#[test]
fn more_names_than_servers_hold_even_if_the_members_are_pinned() {
    let mut roster = roster(&[], Some((&["eu-1", "eu-2"], 2)));
    roster.hear(at(1), 0, beat("us-1", "o3", 1));
    assert!(hold(&roster, 1, &servers(2)).starts_with("more members than servers: eu-1, eu-2, us-1, and 2"));
    // It was renamed, or went away.
    assert_eq!(hold(&roster, 60, &servers(2)), "");
}

#[test]
fn configured_members_must_name_us_and_fit_the_servers() {
    let stranger = roster(&["eu-2", "us-1"], None);
    assert!(hold(&stranger, 0, &servers(2)).contains("does not name this cluster, eu-1"));
    assert_eq!(stranger.wanted_pin(at(0), &servers(2)), None);
    let two = roster(&["eu-1", "eu-2"], None);
    assert!(hold(&two, 0, &servers(3)).contains("names 2 members (eu-1, eu-2), and 3 different servers"));
    assert!(hold(&two, 0, &servers(1)).contains("more members than servers"));
    // A member was forgotten, its server taken out, and its name left in.
    let retired = roster(&["eu-1", "eu-2", "us-1"], Some((&["eu-1", "eu-2"], 3)));
    assert!(hold(&retired, 0, &servers(2)).contains("must be taken out of group.members too"));
    let learnt = roster(&[], Some((&["eu-1", "eu-2"], 1)));
    assert!(!hold(&learnt, 0, &servers(1)).contains("group.members"), "{}", hold(&learnt, 0, &servers(1)));
    assert_eq!(two.wanted_pin(at(0), &servers(2)).unwrap().members, names(&["eu-1", "eu-2"]));
    assert_eq!(two.wanted_pin(at(0), &unidentified(1)).unwrap().of, 2, "the names are given, so nobody is waited for");
}

#[test]
fn two_ledgers_that_take_turns_under_a_members_name_are_named_and_the_first_counts() {
    let mut roster = roster(&[], Some((&["eu-1", "eu-2"], 2)));
    for turn in 0..4 {
        roster.hear(at(5 * turn), 0, beat("eu-2", "a", 5_000 * i64::try_from(turn).unwrap()));
        // Its clock is an hour behind.
        roster.hear(at(5 * turn + 2), 0, beat("eu-2", "b", 5_000 * i64::try_from(turn).unwrap() - 3_600_000));
    }
    assert_eq!(roster.namesakes(at(20)), [("eu-2".into(), vec!["a".into(), "b".into()])]);
    assert_eq!(
        (hold(&roster, 20, &servers(2)).as_str(), roster.peer(&"eu-2".into()).unwrap().beat.origin.0.as_str()),
        ("", "a")
    );
}

/// A beat as programs leave it: of this life, the how manieth in it, by a clock that is of no account.
fn counted(boot: &str, origin: &str, count: u64) -> Heartbeat {
    let at_ms = -i64::try_from(count).unwrap();
    Heartbeat { boot: boot.to_owned(), count, ..beat("eu-2", origin, at_ms) }
}

#[test]
fn a_ledger_that_was_recreated_is_no_second_cluster_and_counts_once_its_beats_go_on() {
    let mut roster = roster(&[], Some((&["eu-1", "eu-2"], 2)));
    assert_eq!(roster.hear(at(0), 0, counted("x", "a", 100)), Brought::Ledger);
    assert_eq!(roster.hear(at(0), 0, counted("x", "a", 100)), Brought::Nothing);
    assert_eq!(roster.hear(at(5), 0, counted("y", "b", 1)), Brought::Nothing, "it may be an old one");
    assert_eq!(roster.hear(at(10), 0, counted("y", "b", 2)), Brought::Ledger);
    assert_eq!(roster.hear(at(10), 1, counted("x", "a", 101)), Brought::Nothing, "late, from another board");
    assert_eq!(roster.hear(at(15), 0, counted("y", "b", 3)), Brought::News);
    assert_eq!(hold(&roster, 15, &servers(2)), "");
    assert_eq!(roster.peer(&"eu-2".into()).unwrap().beat.origin, "b".into());
}

#[test]
fn a_process_that_starts_again_is_heard_whatever_its_clock_says_and_the_one_before_it_is_not() {
    let mut roster = roster(&[], Some((&["eu-1", "eu-2"], 2)));
    let hour = 3_600_000;
    roster.hear(at(0), 0, Heartbeat { at_ms: hour, ..counted("x", "a", 40) });
    assert_eq!(roster.hear(at(5), 0, Heartbeat { at_ms: 5, ..counted("y", "a", 1) }), Brought::News);
    assert_eq!(roster.hear(at(10), 1, Heartbeat { at_ms: 2 * hour, ..counted("x", "a", 39) }), Brought::Nothing);
    assert_eq!(roster.hear(at(10), 2, Heartbeat { at_ms: 2 * hour, ..counted("x", "a", 41) }), Brought::Nothing);
    assert_eq!(roster.peer(&"eu-2".into()).unwrap().beat.boot, "y");
    // Both live, and one of them ends: the one that goes on counts.
    assert_eq!(roster.hear(at(15), 1, counted("x", "a", 42)), Brought::News);
}

#[test]
fn beats_of_older_programs_that_do_not_count_are_ordered_by_their_time_within_a_life() {
    let mut roster = roster(&[], Some((&["eu-1", "eu-2"], 2)));
    let old = |boot: &str, at_ms| Heartbeat { boot: boot.to_owned(), ..beat("eu-2", "a", at_ms) };
    assert_eq!(roster.hear(at(0), 0, old("x", 50)), Brought::Ledger);
    assert_eq!(roster.hear(at(5), 0, old("x", 49)), Brought::Nothing);
    assert_eq!(roster.hear(at(5), 0, old("x", 51)), Brought::News);
    assert_eq!(roster.hear(at(9), 0, counted("y", "a", 1)), Brought::News, "it was upgraded");
    assert_eq!(roster.hear(at(14), 0, old("z", 7)), Brought::News, "and taken back");
    let text = serde_json::to_string(&counted("y", "a", 1)).unwrap();
    assert_eq!(serde_json::from_str::<Heartbeat>(&text.replace(r#""count":1,"#, "")).unwrap().count, 0);
}

#[test]
fn a_member_that_starts_again_and_again_fills_no_memory() {
    let mut roster = roster(&[], None);
    for life in 0..1_000 {
        roster.hear(at(life), 0, counted(&format!("life-{life}"), "a", 1));
        assert_eq!(roster.peer(&"eu-2".into()).unwrap().beat.boot, format!("life-{life}"));
    }
    let size = format!("{:?}", roster.peer(&"eu-2".into())).len();
    assert!(size < 20_000, "{size} bytes in words");
}

#[test]
fn a_peer_with_other_members_or_settings_is_told_apart_by_name() {
    let mut ours = roster(&[], Some((&["eu-1", "eu-2"], 2)));
    let theirs = roster(&[], Some((&["eu-1", "eu-2", "us-1"], 3)));
    let standing = theirs.standing(at(0), &servers(3));
    let beat =
        |roster: &Roster, config: String| Heartbeat { settings: roster.settings(), config, ..beat("eu-2", "o2", 1) };
    ours.hear(at(0), 0, beat(&theirs, standing.config.clone()));
    let words = "group.members is \"eu-1, eu-2, us-1\" there and \"eu-1, eu-2\" here";
    assert_eq!(ours.differences(&"eu-2".into()), [words]);
    assert_ne!(ours.standing(at(0), &servers(2)).config, standing.config);
    let same = ours.standing(at(0), &servers(2)).config;
    ours.hear(at(1), 0, Heartbeat { at_ms: 2, ..beat(&ours, same) });
    assert_eq!(ours.differences(&"eu-2".into()), Vec::<String>::new());
}

#[test]
fn made_up_names_fill_no_memory_and_drive_no_member_out() {
    let mut roster = roster(&[], Some((&["eu-1", "eu-2"], 2)));
    roster.hear(at(0), 0, beat("eu-2", "o2", 1));
    for number in 0..5_000_u64 {
        roster.hear(at(number), 0, beat(&format!("x-{number}"), "o", 1));
    }
    assert_eq!(roster.peers().count(), STRANGERS_MAX + 1);
    assert!(roster.peer(&"eu-2".into()).is_some() && roster.peer(&"x-4999".into()).is_some());
}

fn answering(answered: &[&str], silent: &[&str]) -> Servers {
    let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    Servers { distinct: answered.len(), identified: set(answered), unidentified: set(silent), ..Servers::default() }
}

// Faults: D4
#[test]
fn a_server_that_never_answered_is_named_and_holds_until_it_answered_once_or_is_taken_out() {
    let both = answering(&["a:1", "b:1"], &[]);
    let mut roster = roster(&[], Some((&["eu-1", "eu-2"], 2)));
    // What an older program pinned says nothing of servers; it is taken down when all answer.
    assert_eq!(roster.wanted_pin(at(0), &answering(&["a:1"], &["b:1"])), None);
    let pin = roster.wanted_pin(at(0), &both).unwrap();
    assert_eq!(pin.answered, both.identified);
    roster.pinned(Some(pin));
    assert_eq!(roster.wanted_pin(at(0), &both), None);
    assert_eq!(hold(&roster, 0, &answering(&["a:1"], &["b:1"])), "", "it has answered once");
    // A third is added, with a mistake in its address: as many as are pinned answer.
    let typo = answering(&["a:1", "b:1"], &["redsi-c:1"]);
    let standing = roster.standing(at(1), &typo);
    let held = standing.hold.unwrap();
    assert!(held.reason == Reason::Servers && held.words.starts_with("redsi-c:1 has never answered"), "{held:?}");
    assert_eq!(roster.wanted_pin(at(1), &typo), None);
    assert_eq!(hold(&roster, 1, &both), "", "it was taken out");
    // Another address of a server that is known.
    let alias = Servers { distinct: 2, ..answering(&["a:1", "b:1", "10.0.0.7:1"], &[]) };
    let pin = roster.wanted_pin(at(2), &alias).unwrap();
    assert_eq!(pin.answered, alias.identified);
    roster.pinned(Some(pin));
    let away = Servers { distinct: 2, ..answering(&["a:1", "b:1"], &["10.0.0.7:1"]) };
    assert_eq!((hold(&roster, 3, &away).as_str(), roster.wanted_pin(at(3), &away)), ("", None));
}

#[test]
fn named_members_are_pinned_and_their_servers_have_to_answer_once() {
    let mut roster = roster(&["eu-1", "eu-2"], None);
    let half = answering(&["a:1"], &["b:1"]);
    let pin = roster.wanted_pin(at(0), &half).unwrap();
    roster.pinned(Some(pin));
    assert!(hold(&roster, 0, &half).starts_with("b:1 has never answered"), "{}", hold(&roster, 0, &half));
    let both = answering(&["a:1", "b:1"], &[]);
    roster.pinned(roster.wanted_pin(at(1), &both));
    assert_eq!(hold(&roster, 2, &half), "");
}

// Faults: D3
#[test]
fn a_retired_member_that_returns_stops_nobody_and_stays_forgotten_until_it_is_added() {
    let mut roster = forgot_us_1(&[]);
    // Its server is taken out, and it still posts to those of the others.
    let two = answering(&["a:1", "b:1"], &[]);
    roster.hear(at(1), 0, beat("eu-2", "o2", 1));
    roster.hear(at(1), 0, beat("us-1", "o3", 1));
    let pin = roster.wanted_pin(at(1), &two).unwrap();
    assert_eq!((&pin.members, pin.of, &pin.forgotten), (&names(&["eu-1", "eu-2"]), 2, &names(&["us-1"])));
    roster.pinned(Some(pin));
    for seconds in [2, 5] {
        assert_eq!(hold(&roster, seconds, &two), "");
    }
    // Its server is configured again, and it leaves a beat: that adds it.
    let three = answering(&["a:1", "b:1", "c:1"], &[]);
    let pin = roster.wanted_pin(at(3), &three).unwrap();
    assert_eq!((&pin.members, &pin.forgotten), (&names(&["eu-1", "eu-2", "us-1"]), &names(&[])));
    // Unless another one has come with that server.
    roster.hear(at(3), 0, beat("ap-1", "o4", 1));
    let pin = roster.wanted_pin(at(3), &three).unwrap();
    assert_eq!((&pin.members, &pin.forgotten), (&names(&["ap-1", "eu-1", "eu-2"]), &names(&["us-1"])));
}

#[test]
fn a_member_with_another_name_than_before_is_named_with_both_and_with_either_cure() {
    for configured in [&[][..], &["eu-1", "eu-2", "us-1"]] {
        let mut roster = roster(configured, Some((&["eu-1", "eu-2", "us-1"], 3)));
        roster.hear(at(1), 0, beat("eu-2", "o2", 1));
        roster.hear(at(1), 0, beat("c-2ce3de2e", "o3", 1));
        let words = hold(&roster, 1, &servers(3));
        for part in ["c-2ce3de2e is heard from, and us-1 is not", "its old name back", "allclear group forget us-1"] {
            assert!(words.contains(part), "{part}: {words}");
        }
    }
}

// Faults: D3
#[test]
fn a_member_is_renamed_by_the_recipe() {
    // The others forget the old name; the new one takes its place.
    let mut other = roster(&[], Some((&["eu-1", "eu-2", "us-1"], 3)));
    other.hear(at(1), 0, beat("eu-2", "o2", 1));
    other.hear(at(1), 0, beat("us-east", "o3", 1));
    assert_ne!(hold(&other, 1, &servers(3)), "");
    other.pinned(Some(Pin { members: names(&["eu-1", "eu-2"]), of: 3, forgotten: names(&["us-1"]), ..Pin::default() }));
    let pin = other.wanted_pin(at(2), &servers(3)).unwrap();
    assert_eq!(pin.members, names(&["eu-1", "eu-2", "us-east"]));
    other.pinned(Some(pin));
    assert_eq!(hold(&other, 2, &servers(3)), "");
    // The renamed one has its old name in its ledger, and drops it by itself.
    let old = Pin { members: names(&["eu-1", "eu-2", "us-1"]), of: 3, ..Pin::default() };
    let settings = settings(&Policy::default(), false);
    let mut renamed = Roster::new("us-east".into(), "o3".into(), BTreeSet::new(), settings, Some(old));
    renamed.hear(at(1), 0, beat("eu-2", "o2", 1));
    renamed.hear(at(1), 0, Heartbeat { member: "eu-1".into(), ..beat("eu-1", "o1", 1) });
    let pin = renamed.wanted_pin(at(1), &servers(3)).unwrap();
    assert_eq!((pin.members, pin.forgotten), (names(&["eu-1", "eu-2", "us-east"]), names(&["us-1"])));
}

#[test]
fn every_difference_has_a_cure_that_names_the_cluster() {
    let pin = |members: &[&str], forgotten: &[&str]| {
        Some(Pin { members: names(members), of: 3, forgotten: names(forgotten), ..Pin::default() })
    };
    let of = |own: &str, settings: BTreeMap<String, String>, pin| {
        Roster::new(own.into(), own.into(), BTreeSet::new(), settings, pin)
    };
    let usual = || settings(&Policy::default(), false);
    let with = |name: &str, value: &str| {
        let mut settings = usual();
        settings.insert(name.to_owned(), value.to_owned());
        settings
    };
    let all: &[&str] = &["eu-1", "eu-2", "us-1"];
    let rows = [
        (usual(), pin(all, &[]), None),
        (with("purge.paths", "/a"), pin(all, &[]), Some("give purge.paths one value in eu-2 and in eu-1")),
        (with("rules", "99"), pin(all, &[]), Some("upgrade allclear in eu-1")),
        (with("rules", "0"), pin(all, &[]), Some("upgrade allclear in eu-2")),
        (
            usual(),
            pin(&["eu-2", "us-1"], &["eu-1"]),
            Some(
                "eu-2 does not count this cluster among its members: if it was forgotten there, run allclear group add eu-1 there",
            ),
        ),
        (usual(), None, Some("eu-2 does not know the members yet")),
    ];
    for (settings, theirs, cure) in rows {
        let mut ours = of("eu-1", usual(), pin(all, &[]));
        let there = of("eu-2", settings, theirs);
        let config = there.standing(at(0), &servers(3)).config;
        let members = there.pin().map(|pin| pin.members.clone()).unwrap_or_default();
        ours.hear(at(0), 0, Heartbeat { settings: there.settings(), config, members, ..beat("eu-2", "o2", 1) });
        let said = ours.cure(&"eu-2".into());
        assert!(said.as_deref().unwrap_or("-").starts_with(cure.unwrap_or("-")), "{said:?}");
        assert_eq!(said.is_none(), ours.differences(&"eu-2".into()).is_empty());
    }
    let mut ours = of("eu-1", usual(), pin(&["eu-1", "eu-2"], &["us-1"]));
    let there = of("eu-2", usual(), pin(all, &[]));
    let config = there.standing(at(0), &servers(3)).config;
    ours.hear(at(0), 0, Heartbeat { settings: there.settings(), config, members: names(all), ..beat("eu-2", "o2", 1) });
    assert_eq!(ours.cure(&"eu-2".into()).unwrap(), "run allclear group forget us-1 in eu-2 too");
}
