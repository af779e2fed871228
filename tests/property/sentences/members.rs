//! What the group shows of its members: rosters are drawn at random, and what holds each up, how its members are heard from and what
//! is to be done about a difference is read sentence by sentence.

use std::collections::{BTreeMap, BTreeSet};

use kernel::id::Member;
use kernel::machine::Timestamp;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use purge::agreement::roster::{Heartbeat, Pin, Roster, Servers, Stands, settings};
use purge::bounds::policy::Policy;

use super::{Read, find};

/// Where the sentences stand.
const HOLD_ROOMS: [&str; 4] = [
    include_str!("../../../src/domain/purge/agreement/roster/derived.rs"),
    include_str!("../../../src/domain/purge/agreement/roster/hold.rs"),
    include_str!("../../../src/domain/purge/agreement/roster/pins.rs"),
    include_str!("../../../src/domain/purge/agreement/roster/twins.rs"),
];
const MEMBER_ROOMS: [&str; 2] = [
    include_str!("../../../src/domain/purge/agreement/roster.rs"),
    include_str!("../../../src/domain/purge/agreement/roster/peer_status.rs"),
];

const ROSTERS: usize = 20_000;
const OWN: &str = "eu-1";
const NAMES: [&str; 4] = ["eu-1", "eu-2", "us-1", "us-2"];
/// The time at which it is asked, in seconds.
const NOW: u64 = 1_000;
/// A beat speaks for its member so long, in seconds.
const HEARD_FOR: u64 = 40;

/// In what a beat differs from ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Differs {
    Nothing,
    Paths,
    OlderRules,
    NewerRules,
    UnknownSetting,
    Members,
    NoMembers,
    WithoutUs,
    Forgotten,
}

/// What we have of another member: when it left each beat, when we read it, and in what it differs.
#[derive(Clone, Debug)]
struct Peer {
    /// Seconds before [`NOW`] that it left its beats, newest last, and how much later each was read.
    beats: Vec<(u64, u64)>,
    differs: Differs,
    place: bool,
}

impl Peer {
    fn read_ago(&self) -> u64 {
        let reads = self.beats.iter().map(|(ago, later)| ago - later);
        reads.min().unwrap()
    }

    fn left_ago(&self) -> u64 {
        self.beats.iter().map(|(ago, _)| *ago).min().unwrap()
    }
}

/// Another allclear of our name: how long ago its beats were read, whether ours was there before, and whether its ledger sorts
/// before ours.
#[derive(Clone, Debug)]
struct Twin {
    ago: Vec<u64>,
    ours_was_there: bool,
    is_lower: bool,
}

#[derive(Clone, Debug)]
struct Scene {
    configured: BTreeSet<Member>,
    pin: Option<Pin>,
    servers: Servers,
    peers: BTreeMap<&'static str, Peer>,
    twin: Option<Twin>,
    only_own: bool,
    /// The namespaces of members of the group `default`, and how long ago they were read; `None`: the name is not derived.
    elders: Option<Option<(Vec<&'static str>, u64)>>,
}

impl Scene {
    fn is_heard(&self, member: &str) -> bool {
        member == OWN || self.peers.get(member).is_some_and(|peer| peer.read_ago() <= HEARD_FOR)
    }

    fn most(&self) -> usize {
        (self.servers.distinct + self.servers.unidentified.len()).max(1)
    }

    fn pinned(&self) -> BTreeSet<Member> {
        self.pin.iter().flat_map(|pin| pin.members.clone()).collect()
    }

    fn forgotten(&self, member: &Member) -> bool {
        self.pin.as_ref().is_some_and(|pin| pin.forgotten.contains(member))
    }

    /// Those that are heard from, ourselves included.
    fn heard(&self) -> BTreeSet<Member> {
        NAMES.into_iter().filter(|name| self.is_heard(name)).map(Member::from).collect()
    }

    fn twin_is_near(&self) -> bool {
        self.twin.as_ref().is_some_and(|twin| twin.ago.iter().min().unwrap() <= &(HEARD_FOR + 15))
    }
}

// --- rosters ---

fn names(of: Vec<&'static str>) -> BTreeSet<Member> {
    of.into_iter().map(Member::from).collect()
}

fn servers() -> impl Strategy<Value = Servers> {
    (0..5_usize, 0..3_usize, prop::bool::weighted(0.05), any::<bool>()).prop_map(|(distinct, silent, untried, why)| {
        Servers {
            distinct,
            identified: (0..distinct).map(|number| format!("redis-{number}")).collect(),
            unidentified: (distinct..distinct + silent).map(|number| format!("redis-{number}")).collect(),
            reasons: (distinct..distinct + silent)
                .filter(|_| why)
                .map(|number| (format!("redis-{number}"), "NOAUTH".to_owned()))
                .collect(),
            untried,
        }
    })
}

fn pin() -> impl Strategy<Value = Option<Pin>> {
    let pin = (
        subsequence(&NAMES[..], 1..=4),
        1..4_usize,
        subsequence(&NAMES[1..], 0..=2),
        subsequence(vec!["redis-0", "redis-1", "redis-2"], 0..=3),
    );
    let pin = pin.prop_map(|(members, of, forgotten, answered)| {
        let members = names(members);
        let forgotten = names(forgotten).difference(&members).cloned().collect();
        Pin { members, of, forgotten, answered: answered.into_iter().map(str::to_owned).collect(), ..Pin::default() }
    });
    proptest::option::weighted(0.8, pin)
}

fn peer() -> impl Strategy<Value = Peer> {
    let differs = select(vec![
        Differs::Nothing,
        Differs::Paths,
        Differs::OlderRules,
        Differs::NewerRules,
        Differs::UnknownSetting,
        Differs::Members,
        Differs::NoMembers,
        Differs::WithoutUs,
        Differs::Forgotten,
    ]);
    // Two beats are read within 6 s of being left; the first one may have been there for as long as a board keeps it.
    let beats = (prop_oneof![0..30_u64, 30..150_u64], 0..=6_u64, 0..=30_u64, any::<bool>());
    let beats = beats.prop_map(|(ago, later, first_later, is_single)| {
        let first = (ago + 60, first_later);
        if is_single { vec![(ago + first_later, first_later)] } else { vec![first, (ago + later, later)] }
    });
    (beats, differs, any::<bool>()).prop_map(|(beats, differs, place)| Peer { beats, differs, place })
}

fn scenes() -> impl Strategy<Value = Scene> {
    let twin = (vec(1..80_u64, 1..3), any::<bool>(), any::<bool>());
    let twin = twin.prop_map(|(ago, ours_was_there, is_lower)| Twin { ago, ours_was_there, is_lower });
    let elders = proptest::option::weighted(0.8, (subsequence(vec!["shop", "blog"], 0..=2), 0..80_u64));
    let often = prop::bool::weighted;
    (
        prop_oneof![2 => Just(Vec::new()), 1 => subsequence(&NAMES[..], 1..=4)],
        pin(),
        servers(),
        btree_map(select(&NAMES[1..]), peer(), 0..=3),
        proptest::option::weighted(0.1, twin),
        often(0.3),
        proptest::option::weighted(0.1, elders),
    )
        .prop_map(|(configured, pin, servers, peers, twin, only_own, elders)| Scene {
            configured: names(configured),
            pin,
            servers,
            peers,
            twin,
            only_own,
            elders,
        })
}

fn at(ago: u64) -> Timestamp {
    Timestamp::from_millis((NOW - ago) * 1_000)
}

fn beat_of(name: &'static str, peer: &Peer, pin: &Option<Pin>, count: u64, ours: &Roster) -> Heartbeat {
    let mut settings = ours.settings();
    let mut members: BTreeSet<Member> = pin.iter().flat_map(|pin| pin.members.clone()).collect();
    let own = Member::from(OWN);
    match peer.differs {
        Differs::Nothing | Differs::UnknownSetting => {}
        Differs::Paths => drop(settings.insert("purge.paths".to_owned(), "/a".to_owned())),
        Differs::OlderRules => drop(settings.insert("rules".to_owned(), "2".to_owned())),
        Differs::NewerRules => drop(settings.insert("rules".to_owned(), "4".to_owned())),
        Differs::Members => drop(members.insert("elsewhere".into())),
        Differs::NoMembers => members.clear(),
        Differs::WithoutUs => drop(members.remove(&own)),
        Differs::Forgotten => members.extend(pin.iter().flat_map(|pin| pin.forgotten.clone())),
    }
    let said: Vec<&str> = members.iter().map(|member| member.0.as_str()).collect();
    if matches!(peer.differs, Differs::Members | Differs::NoMembers | Differs::WithoutUs | Differs::Forgotten) {
        settings.insert("group.members".to_owned(), said.join(", "));
    }
    let hashed = |settings: &BTreeMap<String, String>| {
        kernel::id::config_hash(settings.iter().map(|(name, value)| (name.as_str(), value.as_str())))
    };
    let config = if peer.differs == Differs::UnknownSetting { "another".to_owned() } else { hashed(&settings) };
    let place = if peer.place { format!("redis-of-{name}") } else { String::new() };
    Heartbeat {
        member: name.into(),
        origin: format!("ledger-{name}").as_str().into(),
        boot: "b".to_owned(),
        count,
        version: "0.1.0".to_owned(),
        config,
        members,
        settings,
        stands: Stands { place, ..Stands::default() },
        ..Heartbeat::default()
    }
}

fn roster(scene: &Scene) -> Roster {
    let settings = settings(&Policy::default(), false);
    let mut roster = Roster::new(OWN.into(), "m".into(), scene.configured.clone(), settings, scene.pin.clone());
    roster = roster.on_own_redis_only(scene.only_own);
    let mut turns: Vec<(u64, &'static str, u64)> = Vec::new();
    for (name, peer) in &scene.peers {
        turns.extend(peer.beats.iter().zip(1..).map(|((ago, later), count)| (ago - later, *name, count)));
    }
    turns.sort_by_key(|(ago, _, count)| (std::cmp::Reverse(*ago), *count));
    for (ago, name, count) in turns {
        let beat = beat_of(name, &scene.peers[name], &scene.pin, count, &roster);
        let _ = roster.hear(at(ago), 0, beat);
    }
    if let Some(Twin { ago, ours_was_there, is_lower }) = &scene.twin {
        let mut ago = ago.clone();
        ago.sort_by_key(|ago| std::cmp::Reverse(*ago));
        for (ago, count) in ago.into_iter().zip(1..) {
            let origin = if *is_lower { "a" } else { "z" };
            let beat = Heartbeat { member: OWN.into(), origin: origin.into(), count, ..Heartbeat::default() };
            roster.hear_own(at(ago), &beat, *ours_was_there);
        }
    }
    if let Some(elders) = &scene.elders {
        roster = roster.derived_from("ns-shop".to_owned(), ["shop".to_owned()].into());
        if let Some((watch, ago)) = elders {
            let stands = Stands { watch: watch.iter().map(|name| (*name).to_owned()).collect(), ..Stands::default() };
            let beat = Heartbeat { member: "us-9".into(), origin: "elder".into(), stands, ..Heartbeat::default() };
            roster.hear_elders(at(*ago), vec![beat]);
        }
    }
    roster
}

// --- what is said ---

fn split(text: &str) -> BTreeSet<Member> {
    text.split(", ").map(|name| name.split(" (").next().unwrap().into()).collect()
}

/// Whether all these are so of a text of names.
fn all(text: &str, is_so: impl Fn(&Member) -> bool) -> bool {
    split(text).iter().all(is_so)
}

/// What may be said, with `…` for what varies, and what must be so then.
type Row<C> = (&'static str, C);
type OfScene = fn(&Scene, &[&str]) -> bool;
type OfMember = fn(&Of<'_>, &[&str]) -> bool;

/// What holds the group up.
const HOLDS: &[Row<OfScene>] = &[
    (
        "another cluster or allclear (ledger …) reports by the name eu-1 through the only Redis that is configured: …",
        |scene, _| scene.only_own && scene.twin_is_near(),
    ),
    (
        "another allclear reports by the name eu-1 (its ledger is …) and comes first, so this one waits: …",
        |scene, said| {
            let comes_first = |twin: &Twin| !twin.ours_was_there || (twin.is_lower && twin.ago.len() > 1);
            scene.twin_is_near() && scene.twin.as_ref().is_some_and(comes_first) && ["a", "z"].contains(&said[0])
        },
    ),
    ("group.members does not name this cluster, eu-1, but …; …", |scene, said| {
        split(said[0]) == scene.configured && !scene.configured.contains(&OWN.into())
    }),
    ("the group's servers are being asked who they are", |scene, _| scene.servers.untried),
    ("the group's servers are being asked whether a group called default works there", |scene, _| {
        scene.elders == Some(None)
    }),
    (
        "this group is called ns-shop after its namespaces, and on its Redis servers a group called default reports: us-9 watches shop there; …",
        |scene, _| {
            scene.elders.clone().flatten().is_some_and(|(watch, ago)| watch.contains(&"shop") && ago <= HEARD_FOR)
        },
    ),
    (
        "this group is called ns-shop after its namespaces, and on its Redis servers a group called default reports: us-9 does not say there which namespaces it watches; …",
        |scene, _| scene.elders.clone().flatten().is_some_and(|(watch, ago)| watch.is_empty() && ago <= HEARD_FOR),
    ),
    ("the ledger has the members …, and no Redis is configured here: …", |scene, said| {
        split(said[0]) == scene.pinned() && scene.servers.distinct == 0 && scene.servers.unidentified.is_empty()
    }),
    ("the ledger has … members (…), and … configured here: give REMOTE_REDIS_HOSTS …", |scene, said| {
        split(said[1]) == scene.pinned()
            && said[0] == scene.pinned().len().to_string()
            && scene.pinned().len() > scene.most()
            && said[2].starts_with(&scene.most().to_string())
    }),
    ("the ledger has … among the members, and group.members here does not name it: …", |scene, said| {
        all(said[0], |member| scene.pinned().contains(member) && !scene.configured.contains(member))
    }),
    ("more members than servers: …, and … configured; … is heard from, and … is not: if …", |scene, said| {
        said[1].starts_with(&scene.most().to_string())
            && split(said[0]).len() > scene.most()
            && all(said[2], |member| scene.is_heard(&member.0))
            && all(said[3], |member| !scene.is_heard(&member.0))
    }),
    (
        "more members than servers: …, and … configured; each cluster's own Redis must be in redis.url or group.remotes of all of them, and a member that has retired must be taken out of group.members too",
        |scene, said| !scene.configured.is_empty() && are_too_many(scene, said),
    ),
    (
        "more members than servers: …, and … configured; each cluster's own Redis must be in redis.url or group.remotes of all of them",
        are_too_many,
    ),
    (
        "… has never answered…, so it is not known whether a member is behind it that is to be waited for; …",
        |scene, said| {
            let answered = scene.pin.clone().unwrap().answered;
            said[0].split(", ").all(|name| scene.servers.unidentified.contains(name) && !answered.contains(name))
                && said[1].is_empty() == scene.servers.reasons.is_empty()
        },
    ),
    ("group.members names … members (…), and … configured; each member has one", |scene, said| {
        let number = scene.configured.len();
        let servers: usize = said[2].split(' ').next().unwrap().parse().unwrap();
        said[0] == number.to_string()
            && split(said[1]) == scene.configured
            && (number < servers && servers == scene.servers.distinct || number > servers && servers == scene.most())
    }),
    ("it is not known how many members the group has: …; known are …", |scene, said| {
        let named = |name: &String| said[0].contains(&format!("{name} has not said which server it is"));
        !scene.servers.unidentified.is_empty()
            && scene.servers.unidentified.iter().all(named)
            && said[0].contains("NOAUTH") != scene.servers.reasons.is_empty()
            && all(said[1], |member| scene.is_heard(&member.0) || scene.pinned().contains(member))
    }),
    ("… of … members are known: …; the second has not been heard from", |scene, said| lacks(scene, said, 1)),
    ("… of … members are known: …; the third has not been heard from", |scene, said| lacks(scene, said, 1)),
    ("… of … members are known: …; the 4th has not been heard from", |scene, said| lacks(scene, said, 1)),
    ("… of … members are known: …; 2 have not been heard from", |scene, said| lacks(scene, said, 2)),
    ("… of … members are known: …; 3 have not been heard from", |scene, said| lacks(scene, said, 3)),
    ("the members are being written to the ledger", |scene, _| {
        let mut heard = scene.heard();
        heard.retain(|name| !scene.forgotten(name));
        if scene.configured.is_empty() {
            return scene.servers.unidentified.is_empty() && heard.len() <= scene.servers.distinct.max(1);
        }
        heard.is_subset(&scene.configured)
    }),
    ("… is heard from, and group.members here does not name it: …", |scene, said| {
        all(said[0], |member| scene.is_heard(&member.0) && !scene.configured.contains(member))
    }),
    (
        "the ledger has the members …, and of these … are not heard from: if they have retired, …",
        |scene, said| {
            split(said[0]) == scene.pinned()
                && all(said[1], |member| scene.pinned().contains(member) && !scene.is_heard(&member.0))
        },
    ),
];

fn are_too_many(scene: &Scene, said: &[&str]) -> bool {
    said[1].starts_with(&scene.most().to_string())
        && split(said[0]).len() > scene.most()
        && all(said[0], |name| {
            scene.is_heard(&name.0) || scene.pinned().contains(name) || scene.configured.contains(name)
        })
}

fn lacks(scene: &Scene, said: &[&str], number: usize) -> bool {
    let known = split(said[2]);
    said[0] == known.len().to_string()
        && said[1] == scene.servers.distinct.to_string()
        && scene.servers.distinct == known.len() + number
        && known.iter().all(|member| scene.is_heard(&member.0) || scene.pinned().contains(member))
        && scene.heard().iter().all(|member| known.contains(member) || scene.forgotten(member))
}

/// A member beside what is said of it.
struct Of<'a> {
    peer: Option<&'a Peer>,
    scene: &'a Scene,
    name: &'static str,
}

fn is_silent_for(of: &Of<'_>, seconds: u64) -> bool {
    of.peer.is_some_and(|peer| peer.left_ago() > seconds)
}

/// What is said of one member.
const MEMBERS: &[Row<OfMember>] = &[
    ("has left no report that was read here", |of, _| of.peer.is_none()),
    ("has not been heard from for more than 40 s", |of, _| is_silent_for(of, 40)),
    ("has not been heard from for more than a minute", |of, _| is_silent_for(of, 59)),
    ("heard from in the last … s", |of, said| {
        of.peer.is_some_and(|peer| peer.left_ago() <= said[0].parse().unwrap())
    }),
    ("not heard from for … s at least", |of, said| {
        of.peer.is_some_and(|peer| peer.left_ago() >= said[0].parse().unwrap())
    }),
    ("upgrade allclear in …: its release judges by older rules", |of, said| {
        let older = match of.peer.unwrap().differs {
            Differs::OlderRules => of.name,
            _ => OWN,
        };
        matches!(of.peer.unwrap().differs, Differs::OlderRules | Differs::NewerRules) && said[0] == older
    }),
    ("give purge.paths one value in … and in eu-1, and restart what was changed", |of, said| {
        of.peer.unwrap().differs == Differs::Paths && said[0] == of.name
    }),
    ("run one version of allclear in … and in eu-1", |of, _| of.peer.unwrap().differs == Differs::UnknownSetting),
    ("… does not know the members yet; allclear group show there says why", |of, said| {
        said[0] == of.name && (of.peer.unwrap().differs == Differs::NoMembers || of.scene.pinned().len() == 1)
    }),
    ("run allclear group forget … in … too", |of, said| {
        of.peer.unwrap().differs == Differs::Forgotten && all(said[0], |member| of.scene.forgotten(member))
    }),
    ("… does not count this cluster among its members: …", |of, said| {
        said[0] == of.name
            && (of.peer.unwrap().differs == Differs::WithoutUs || !of.scene.pinned().contains(&OWN.into()))
    }),
    ("give … and eu-1 the same servers in redis.url and group.remotes, and the same group.members; …", |of, _| {
        of.peer.unwrap().differs == Differs::Members
    }),
];

#[test]
fn each_sentence_about_the_members_is_so_in_the_state_that_shows_it() {
    let mut runner = TestRunner::deterministic();
    let (mut holds, mut members) = (Read::of(&HOLD_ROOMS), Read::of(&MEMBER_ROOMS));
    for _ in 0..ROSTERS {
        let scene = scenes().new_tree(&mut runner).unwrap().current();
        let roster = roster(&scene);
        if let Some(hold) = roster.standing(at(0), &scene.servers).hold {
            holds.note(&hold.words, find(HOLDS, &hold.words, |is_so, said| is_so(&scene, said)), || {
                format!("{scene:?}")
            });
        }
        for name in NAMES.into_iter().skip(1) {
            let of = Of { peer: scene.peers.get(name), scene: &scene, name };
            let heard = roster.peer(&name.into()).map(|peer| peer.heard(at(0)));
            let said = [roster.silence(at(0), &name.into()), heard, roster.cure(&name.into())];
            for said in said.into_iter().flatten() {
                members.note(&said, find(MEMBERS, &said, |is_so, said| is_so(&of, said)), || {
                    format!("{name} in {scene:?}")
                });
            }
        }
    }
    let none = format!("none of {ROSTERS} rosters");
    holds.ends(&none, HOLDS);
    members.ends(&none, MEMBERS);
}
