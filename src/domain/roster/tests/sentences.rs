//! Every sentence that the register of members can show, with the state that must produce it. A sentence in the code that no state
//! here produces fails the test, and so does a state that produces another one: *say only what was seen*.

use super::*;

/// The rooms whose sentences are looked for.
const ROOMS: [(&str, &str); 6] = [
    ("roster.rs", include_str!("../../roster.rs")),
    ("derived.rs", include_str!("../derived.rs")),
    ("hold.rs", include_str!("../hold.rs")),
    ("peer_status.rs", include_str!("../peer_status.rs")),
    ("pins.rs", include_str!("../pins.rs")),
    ("twins.rs", include_str!("../twins.rs")),
];

/// Words from which on a text is a sentence.
const WORDS_MIN: usize = 4;

/// The texts of a file that are sentences: of each the longest part without a placeholder.
fn sentences(source: &str) -> Vec<String> {
    let code = source.split("#[cfg(test)]").next().unwrap_or_default();
    let code: Vec<&str> = code.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let (mut found, mut text) = (Vec::new(), None::<String>);
    let code = code.join("\n");
    let mut chars = code.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, &mut text) {
            ('"', None) => text = Some(String::new()),
            ('"', Some(_)) => found.extend(text.take()),
            ('\\', Some(text)) => match chars.next() {
                Some('\n') => while chars.next_if(|c| c.is_whitespace()).is_some() {},
                Some(escaped) => text.push(escaped),
                None => {}
            },
            (c, Some(text)) => text.push(c),
            (_, None) => {}
        }
    }
    let longest = |text: String| {
        let parts = text.split(['{', '}']).step_by(2).map(str::to_owned);
        parts.max_by_key(String::len).unwrap_or_default()
    };
    found.into_iter().map(longest).filter(|part| part.split_whitespace().count() >= WORDS_MIN).collect()
}

fn pin(members: &[&str], of: usize, forgotten: &[&str]) -> Pin {
    Pin { members: names(members), of, forgotten: names(forgotten), ..Pin::default() }
}

/// The roster of eu-1 with these configured members, this pin, and whom it has heard.
fn hearing(configured: &[&str], pin: Option<Pin>, heard: &[&str]) -> Roster {
    let mut roster = roster(configured, None);
    roster.pinned(pin);
    for (number, name) in heard.iter().enumerate() {
        let stands = at_place(if number == 0 { "redis-x:6379" } else { "" });
        let _ = roster.hear(at(1), 0, Heartbeat { stands, ..beat(name, name, 1) });
    }
    roster
}

/// A state in words, the roster in it with the servers, and how the sentence begins.
type Row = (&'static str, Roster, Servers, &'static str);

fn three() -> Option<Pin> {
    Some(pin(&["eu-1", "eu-2", "us-1"], 3, &[]))
}

fn two() -> Option<Pin> {
    Some(pin(&["eu-1", "eu-2"], 2, &[]))
}

/// Who we are is in doubt.
fn of_names() -> Vec<Row> {
    let untried = Servers { untried: true, ..servers(1) };
    let mut second = hearing(&[], two(), &[]);
    second.hear_own(at(1), &beat("eu-1", "o9", 1), false);
    let mut shared = hearing(&[], None, &[]).on_own_redis_only(true);
    shared.hear_own(at(1), &beat("eu-1", "o9", 1), true);
    let derived = || hearing(&[], None, &["eu-2"]).derived_from("ns-shop".to_owned(), ["shop".to_owned()].into());
    let (mut beside, mut older) = (derived(), derived());
    let stands = Stands { watch: ["shop".to_owned()].into(), ..Stands::default() };
    beside.hear_elders(at(1), vec![Heartbeat { stands, ..beat("us-1", "o3", 1) }]);
    older.hear_elders(at(1), vec![beat("us-1", "o3", 1)]);
    vec![
        ("not all were asked", hearing(&[], None, &[]), untried, "the group's servers are being asked who they are"),
        ("nobody looked beside", derived(), servers(2), "the group's servers are being asked whether a group"),
        ("default watches it too", beside, servers(2), "this group is called ns-shop after its namespaces"),
        ("default does not say", older, servers(2), "this group is called ns-shop after its namespaces"),
        ("another was first", second, servers(2), "another allclear reports by the name eu-1 (its ledger is o9)"),
        ("on the only Redis", shared, servers(1), "another cluster or allclear (ledger o9) reports by the name"),
        (
            "not named",
            hearing(&["eu-2", "us-1"], None, &[]),
            servers(2),
            "group.members does not name this cluster, eu-1",
        ),
    ]
}

/// The ledger and the configuration differ.
fn of_pins() -> Vec<Row> {
    let all = three();
    let one_left = hearing(&[], three(), &["eu-2"]);
    let other = hearing(&["ap-1", "eu-1"], two(), &[]);
    let named = &["eu-1", "eu-2", "us-1"][..];
    let forgotten = || Some(pin(&["eu-1", "eu-2"], 3, &["us-1"]));
    let renamed = hearing(named, forgotten(), &["us-east"]);
    let ours_renamed = hearing(&[], Some(pin(&["ap-1", "ap-2", "us-9"], 3, &[])), &["ap-1", "eu-2"]);
    vec![
        (
            "no server",
            hearing(&[], all.clone(), &[]),
            servers(0),
            "the ledger has the members eu-1, eu-2, us-1, and no",
        ),
        ("only ours", hearing(&[], all, &[]), servers(1), "the ledger has 3 members (eu-1, eu-2, us-1), and 1 Redis"),
        ("one is lost", one_left, servers(2), "the ledger has 3 members (eu-1, eu-2, us-1), and 2 different"),
        ("one is not named", other, servers(2), "the ledger has eu-2 among the members, and group.members here"),
        (
            "a new name",
            hearing(&[], three(), &["us-east", "eu-2"]),
            servers(3),
            "more members than servers: eu-1, eu-2,",
        ),
        ("too many", hearing(&[], two(), &["eu-2", "us-1"]), servers(2), "more members than servers: eu-1, eu-2, us-1"),
        (
            "two on one",
            hearing(&[], None, &["eu-2"]),
            servers(1),
            "more members than servers: eu-1, eu-2, and 1 server",
        ),
        ("named still", hearing(named, forgotten(), &[]), servers(2), "more members than servers: eu-1, eu-2, us-1"),
        ("not named yet", renamed, servers(3), "us-east (whose own Redis is redis-x:6379) is heard from, and"),
        ("ours is new", ours_renamed, servers(3), "the ledger has the members ap-1, ap-2, us-9, and of these ap-2"),
        ("all are known", hearing(&[], None, &["eu-2"]), servers(2), "the members are being written to the ledger"),
    ]
}

/// Servers and members are missing.
fn of_servers() -> Vec<Row> {
    let refused =
        Servers { reasons: [("redis-b:6379".to_owned(), "NOAUTH: …".to_owned())].into(), ..unidentified(1) };
    let answered = Pin { answered: ["redis-a:6379".to_owned()].into(), ..pin(&["eu-1", "eu-2"], 2, &[]) };
    let heard = |heard: &[&str]| hearing(&[], None, heard);
    let never = hearing(&[], Some(answered), &[]);
    let fewer = hearing(&["eu-1", "eu-2"], None, &[]);
    vec![
        ("never answered", never.clone(), unidentified(1), "redis-b:6379 has never answered, so it is not known"),
        ("and why", never, refused.clone(), "redis-b:6379 has never answered (NOAUTH: …), so"),
        ("fewer names", fewer, servers(3), "group.members names 2 members (eu-1, eu-2), and 3 different servers"),
        ("who it is", heard(&[]), unidentified(1), "it is not known how many members the group has: redis-b:6379 has"),
        ("and why not", heard(&[]), refused, "it is not known how many members the group has: redis-b:6379 has not"),
        ("the second", heard(&[]), servers(2), "1 of 2 members are known: eu-1; the second has not been heard from"),
        ("the third", heard(&["eu-2"]), servers(3), "2 of 3 members are known: eu-1, eu-2; the third has not"),
        ("the fourth", heard(&["eu-2", "us-1"]), servers(4), "3 of 4 members are known: eu-1, eu-2, us-1; the 4th"),
        ("several", heard(&[]), servers(3), "1 of 3 members are known: eu-1; 2 have not been heard from"),
    ]
}

/// What is said of one member: the state, the sentence that is said, and how it begins.
type Said = (&'static str, String, &'static str);

fn eu_2() -> Member {
    "eu-2".into()
}

/// What is to be done about differences.
fn of_differences() -> Vec<Said> {
    let all: &[&str] = &["eu-1", "eu-2", "us-1"];
    let usual = hearing(&[], three(), &[]);
    let forgot = hearing(&[], Some(pin(&["eu-1", "eu-2"], 3, &["us-1"])), &[]);
    let there = |ours: &Roster, key: &str, value: &str, members: &[&str]| {
        let mut settings = ours.settings();
        settings.insert(MEMBERS.to_owned(), members.join(", "));
        settings.insert(key.to_owned(), value.to_owned());
        let mut ours = ours.clone();
        let beat = Heartbeat { settings, members: names(members), ..beat("eu-2", "o2", 1) };
        let _ = ours.hear(at(1), 0, beat);
        ours
    };
    let cure = |ours: &Roster, key: &str, value: &str, members: &[&str]| {
        there(ours, key, value, members).cure(&eu_2()).unwrap_or_default()
    };
    let same = |ours: &Roster, members: &[&str]| cure(ours, "rules", &ours.settings()["rules"], members);
    let versions = there(&usual, "rules", &usual.settings()["rules"], all).differences(&eu_2()).join("; ");
    vec![
        ("older there", cure(&usual, "rules", "0", all), "upgrade allclear in eu-2: its release judges by older rules"),
        ("older here", cure(&usual, "rules", "99", all), "upgrade allclear in eu-1: its release judges by older rules"),
        ("a value", cure(&usual, "purge.paths", "/a", all), "give purge.paths one value in eu-2 and in eu-1"),
        ("a release", same(&usual, all), "run one version of allclear in eu-2 and in eu-1"),
        ("said", versions, "its version "),
        ("no members there", same(&usual, &[]), "eu-2 does not know the members yet; allclear group show there"),
        ("forgotten here", same(&forgot, all), "run allclear group forget us-1 in eu-2 too"),
        ("we were forgotten", same(&usual, &["eu-2", "us-1"]), "eu-2 does not count this cluster among its members"),
        ("others there", same(&usual, &["eu-1", "eu-2"]), "give eu-2 and eu-1 the same servers in redis.url"),
    ]
}

/// When it was heard from.
fn of_silence() -> Vec<Said> {
    let mut roster = hearing(&[], three(), &[]);
    let silence = |roster: &Roster, seconds| roster.silence(at(seconds), &eu_2()).unwrap_or_default();
    let heard = |roster: &Roster, seconds| roster.peer(&eu_2()).map(|peer| peer.heard(at(seconds))).unwrap_or_default();
    let nothing = silence(&roster, 54);
    let _ = roster.hear(at(1), 0, beat("eu-2", "o2", 1));
    let (found, later, long) = (heard(&roster, 1), heard(&roster, 14), heard(&roster, 55));
    let _ = roster.hear(at(6), 0, beat("eu-2", "o2", 2));
    vec![
        ("nothing was read", nothing, "has left no report that was read here"),
        ("silent for 50 s", silence(&roster, 56), "has not been heard from for more than 40 s"),
        ("silent for 11 min", silence(&roster, 700), "has not been heard from for more than 10 minutes"),
        ("one report, up to 30 s old", found, "heard from in the last 40 s"),
        ("13 s later", later, "heard from in the last 60 s"),
        ("54 s later", long, "not heard from for 50 s at least"),
        ("it goes on", heard(&roster, 7), "heard from in the last 20 s"),
        ("silent for 13 s", heard(&roster, 19), "heard from in the last 40 s"),
    ]
}

#[test]
fn every_sentence_is_said_in_the_state_that_it_is_about_and_none_is_left_without_a_state() {
    let mut said: Vec<String> = Vec::new();
    for (state, roster, servers, begins) in [of_names(), of_pins(), of_servers()].into_iter().flatten() {
        let words = hold(&roster, 1, &servers);
        assert!(words.starts_with(begins), "{state}:\n  {words}\ninstead of\n  {begins}");
        said.push(words);
    }
    for (state, words, begins) in of_differences().into_iter().chain(of_silence()) {
        assert!(words.starts_with(begins), "{state}:\n  {words}\ninstead of\n  {begins}");
        said.push(words);
    }
    for (room, source) in ROOMS {
        let sentences = sentences(source);
        for sentence in sentences {
            let is_visited = said.iter().any(|words| words.contains(&sentence));
            assert!(is_visited, "{room}: no state of the table produces {sentence:?}");
        }
    }
    let all: usize = ROOMS.iter().map(|(_, source)| sentences(source).len()).sum();
    assert!(all > 25, "{all} sentences were found");
}
