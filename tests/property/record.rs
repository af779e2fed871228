//! Records as text: what is written is read back, and nothing that arrives does harm.

use std::collections::{BTreeMap, BTreeSet};

use kernel::id::{Component, InvalidationId, Member, Nonce, NoticeId, Origin, Reference, Seq, Vector, WorkloadId};
use kernel::names::distribution::DistributionId;
use kernel::names::group_name::Alias;
use kernel::names::host::Host;
use kernel::names::image::{Beside, Container, Fields, Version};
use kernel::names::paths::PathSet;
use notices::notice::{About, Kind, Mentions, Notice, PurgeFact};
use proof::tally::Found;
use proptest::collection::{btree_map, btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use purge::records::record::{
    Brief, Cast, Change, Closed, Edge, Failure, LastSite, Lead, Looks, Moved, Outcome, Passed, Phase, Plan, Purge,
    PurgeState, RECORD_BYTES_MAX, Record, Routes, SCHEMA, Seen, Times, Unlisted, Vote, VotePurges,
};
use purge::records::record_codec::{CodecError, decode, encode, form, shed};
use purge::records::rules::Rules;

/// Any text, quotes, escapes and beyond ASCII included, but no longer than what stands there in earnest.
pub(crate) fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z0-9-]{0,20}", ".{0,20}"]
}

pub(crate) fn seq() -> impl Strategy<Value = Seq> {
    prop_oneof![3 => 0..5_u64, 1 => any::<u64>()].prop_map(Seq)
}

fn version() -> impl Strategy<Value = Version> {
    let image = select(vec![
        "app:1".to_owned(),
        "registry.example.com:5000/team/app:1.10".to_owned(),
        format!("app:2@sha256:{}", "a".repeat(64)),
    ]);
    btree_map(select(vec!["web", "init:migrate", "sidecar"]), image, 0..3).prop_map(|images| {
        images.into_iter().map(|(name, text)| (Container::from(name.to_owned()), text.parse().unwrap())).collect()
    })
}

fn beside() -> impl Strategy<Value = Beside> {
    let fields = btree_map("[a-z\\[\\]./ü]{0,20}", any::<u32>(), 0..4)
        .prop_map(|fields| fields.into_iter().map(|(path, hash)| (path.into(), hash)).collect::<Fields>());
    let annotation =
        ("[a-z./]{1,20}", option::of(text())).prop_map(|(key, value)| Beside::annotation(&key, value.as_deref()));
    prop_oneof![fields.prop_map(Beside::Template), annotation]
}

fn hosts() -> impl Strategy<Value = BTreeSet<Host>> {
    btree_set(select(vec!["example.com", "*.example.com", "www.example.org"]), 0..3)
        .prop_map(|hosts| hosts.into_iter().map(|host| Host::parse(host).unwrap()).collect())
}

fn paths() -> impl Strategy<Value = PathSet> {
    vec(select(vec!["/*", "/a/*", "/b", "#tag"]), 0..3)
        .prop_map(|paths| PathSet::from_iter(paths.into_iter().map(|path| path.parse().unwrap())))
}

pub(crate) fn distribution() -> impl Strategy<Value = DistributionId> {
    select(vec!["E1ABC", "E2DEF"]).prop_map(|id| serde_json::from_value(id.into()).unwrap())
}

fn invalidation() -> impl Strategy<Value = Option<InvalidationId>> {
    option::of("[A-Z0-9]{14}".prop_map(InvalidationId))
}

fn change() -> impl Strategy<Value = Change> {
    select(vec![Change::Baseline, Change::Changed, Change::Recovered, Change::Requested])
}

fn failure() -> impl Strategy<Value = Failure> {
    select(vec![Failure::ProgressDeadlineExceeded, Failure::TimedOut, Failure::Aborted, Failure::Degraded])
}

fn stand_in() -> impl Strategy<Value = Option<kernel::id::Kind>> {
    option::of(Just(kernel::id::Kind::Rollout))
}

fn phase() -> impl Strategy<Value = Phase> {
    prop_oneof![Just(Phase::Rolling), Just(Phase::Complete), failure().prop_map(Phase::Failed), Just(Phase::Withdrawn)]
}

fn vector() -> impl Strategy<Value = Vector> {
    let component =
        (text(), seq(), nonce()).prop_map(|(origin, seq, nonce)| Component { origin: Origin(origin), seq, nonce });
    btree_map(text().prop_map(Member), component, 0..3).prop_map(Vector)
}

fn nonce() -> impl Strategy<Value = Nonce> {
    prop_oneof![Just(Nonce::default()), any::<u64>().prop_map(Nonce)]
}

/// The same of an earlier release, whose numbers have no nonces.
fn without_nonces(vote: &mut Vote) {
    vote.vector.0.values_mut().for_each(|component| component.nonce = Nonce::default());
    vote.purges.listed.values_mut().for_each(|purge| purge.refused.clear());
}

/// The same of a record, and no vote remembered.
fn before_nonces(mut record: Record) -> Record {
    record.votes.iter_mut().chain(&mut record.owed).for_each(without_nonces);
    Record { nonce: Nonce::default(), last: None, passed: Vec::new(), ..record }
}

/// The same of a record without a word on what the group calls anything.
fn before_names(mut record: Record) -> Record {
    record.votes.iter_mut().chain(&mut record.owed).for_each(|vote| vote.name = None);
    Record { group_version: None, group_name: None, ..record }
}

fn purge() -> impl Strategy<Value = Purge> {
    let reference = || "allclear-[0-9a-f]{32}".prop_map(Reference);
    let state = prop_oneof![
        Just(PurgeState::Wanted),
        text().prop_map(PurgeState::Owed),
        Just(PurgeState::Created),
        reference().prop_map(PurgeState::Covered),
        Just(PurgeState::Completed),
        Just(PurgeState::DoneByOther),
        text().prop_map(PurgeState::Impossible),
        text().prop_map(PurgeState::Beyond),
    ];
    (reference(), state, invalidation(), option::of(paths()), text()).prop_map(
        |(reference, state, invalidation, sent, refused)| Purge { reference, state, invalidation, sent, refused },
    )
}

prop_compose! {
    fn unlisted()(
        through in distribution(), completed in 0..9_usize, unknown in 0..9_usize, impossible in 0..9_usize,
        waiting in 0..9_usize,
    ) -> Unlisted {
        Unlisted { through, completed, unknown, impossible, waiting }
    }
}

prop_compose! {
    fn times()(began_ms: i64, completed_ms: i64, purge_ms: i64) -> Times {
        Times { began_ms, completed_ms, purge_ms }
    }
}

prop_compose! {
    fn vote()(
        vector in vector(), seq in seq(), version in version(), change in change(), returned: bool, hosts in hosts(),
        except in hosts(), origins in btree_set(text(), 0..2), distributions in btree_set(distribution(), 0..2), paths in paths(),
        listed in btree_map(distribution(), purge(), 0..2), stalled: bool,
        noticed in btree_set("msg_[0-9a-f]{32}".prop_map(NoticeId), 0..3), late: bool, config in "[0-9a-f]{0,16}",
        at_ms: i64, (overtaken, owed_ms, name) in any::<(bool, i64, bool)>(), closed in option::of(outcome()), (why, change_words) in (text(), text()),
        times in times(), rules in select(vec![Rules::FIRST, Rules::SECOND, Rules::CURRENT]), unlisted in option::of(unlisted()),
        narrow in btree_map(select(vec!["example.com", "www.example.org"]).prop_map(|host| Host::parse(host).unwrap()), paths(), 0..2),
    ) -> Vote {
        Vote {
            vector, name: name.then(|| WorkloadId::deployment("shop", "web")), seq, version, closed, why, times, change_words,
            cast: Cast { change, returned, late, rules, config, at_ms },
            plan: Plan { hosts, except, routed: narrow.clone(), narrow, origins, distributions, paths },
            purges: VotePurges { listed, unlisted, stalled, noticed, overtaken, owed_ms },
        }
    }
}

fn outcome() -> impl Strategy<Value = Outcome> {
    let named = select(vec![
        Outcome::Purged,
        Outcome::NothingNew,
        Outcome::Returned,
        Outcome::NoSite,
        Outcome::Owed,
        Outcome::Partly,
        Outcome::PartlyOwed,
        Outcome::RolledBack,
        Outcome::Dead,
    ]);
    prop_oneof![4 => named, 1 => failure().prop_map(Outcome::Failed)]
}

prop_compose! {
    pub(crate) fn seen()(found in select(vec![Found::Fresh, Found::Renewed, Found::Unknown, Found::Stale]), words in text()) -> Seen {
        Seen::new(found, &words)
    }
}

prop_compose! {
    fn closed()(
        seq in seq(), change in text(), outcome in outcome(), why in text(),
        purges in vec((distribution(), invalidation()), 0..2), more in 0..3_usize, seen in option::of(seen()),
    ) -> Closed {
        Closed { seq, change, outcome, why, purges, more, seen }
    }
}

prop_compose! {
    fn purge_fact()(distribution in distribution(), invalidation in invalidation(), paths in paths()) -> PurgeFact {
        PurgeFact { distribution, invalidation, paths: paths.iter().cloned().collect() }
    }
}

prop_compose! {
    pub(crate) fn notice()(
        id in text(), kind in select(Kind::ALL.into_iter().filter(|kind| !kind.is_of_edge()).collect::<Vec<_>>()), at_ms: i64, seq in seq(), rollout in text(), change in text(),
        message in text(), hosts in hosts(), purges in vec(purge_fact(), 0..2), cut: bool, late: bool, stand_in in stand_in(),
    ) -> Notice {
        let mentions = Mentions { hosts: hosts.into_iter().collect(), purges, cut, late, stand_in };
        let about = About::Workload(WorkloadId::deployment("shop", "web"), mentions);
        Notice { id: NoticeId(id), kind, at_ms, about, seq, rollout, change, message }
    }
}

fn last_site() -> impl Strategy<Value = LastSite> {
    prop_oneof![
        hosts().prop_map(LastSite::Hosts),
        btree_set(distribution(), 0..3).prop_map(LastSite::Distributions),
        Just(LastSite::Many),
        seq().prop_map(LastSite::Nothing),
    ]
}

prop_compose! {
    fn passed()(
        (seq, nonce, version, group_version, change) in (seq(), nonce(), version(), option::of(text()), change()),
    ) -> Passed {
        Passed { seq, nonce, version, group_version, change }
    }
}

prop_compose! {
    fn alias()(created in text()) -> Box<Alias> {
        Box::new(Alias { name: WorkloadId::deployment("shop", "web"), created })
    }
}

prop_compose! {
    pub(crate) fn record()(
        (revision, uid, (stand_in, withdrawn), seq, nonce, version) in
            (any::<u64>(), text(), (stand_in(), option::of(version())), seq(), nonce(), version()),
        generation: i64,
        (change, phase, elapsed_ms, settled) in (change(), phase(), any::<u64>(), option::of(version())),
        (edge, closed) in (select(vec![Edge::Settled, Edge::Moved, Edge::Unknown]), seq()),
        requested_at in option::of(text()), (votes, owed) in (vec(vote(), 0..3), vec(vote(), 0..2)), history in vec(closed(), 0..3),
        untold in vec(notice(), 0..2), conditions in btree_set(text(), 0..3),
        (config, last, stalled) in ("[0-9a-f]{0,16}", option::of(vector().prop_map(|v| Brief::of(&v))), any::<bool>()),
        lives in vector().prop_map(|v| Brief::of(&v)),
        set_back in option::of((seq(), any::<u64>())),
        (off, chosen, volumes, request, asked, from) in
            (any::<bool>(), any::<bool>(), any::<bool>(), option::of(seq()), option::of(paths()), option::of(version())),
        (times, site, group_version, group_name, remark) in
            (times(), option::of(last_site()), option::of(text()), option::of(alias()), text()),
        passed in vec(passed(), 0..3), (hosts, move_of) in (vec(text(), 0..40), option::of((text(), text()))),
    ) -> Record {
        Record {
            revision, uid, stand_in, withdrawn, seq, nonce, version, group_version, group_name, generation, change, phase, elapsed_ms, settled, edge, closed,
            requested_at, passed, votes, owed, looks: Looks::default().into(), history, untold, config, last, lives, stalled, set_back, off, chosen, volumes, request, asked, from, site, times,
            conditions, routes: volumes.then(|| Box::new(Routes::vote(&Record::first(Seq(1)), Seq(2), &Default::default()).1)),
            remark,
            leads: hosts.iter().map(|host| Lead::of(host)).collect(),
            moved: move_of.map(|(identity, words)| Moved::new(&identity, &words)),
        }
    }
}

/// A record as ten thousand of them are: one container, complete, nothing in flight.
fn idle() -> Record {
    let mut record = decode(br#"{"r":3,"u":"0f6b1c9e-52c4-4d8f-9a57-2f6f1d6b9a10","s":2,"v":{},"g":7}"#).unwrap();
    let image = "registry.example.com:5000/shop/checkout-api:2026.11.20-3f9c2d1".parse().unwrap();
    record.version = Version::from_iter([(Container::from("checkout-api".to_owned()), image)]);
    record.closed = Seq(2);
    record
}

proptest! {
    #[test]
    fn a_record_survives_its_own_text(record in record()) {
        let written = encode(&record).unwrap();
        prop_assert_eq!(decode(written.as_bytes()).unwrap(), record);
    }

    // Two members, or one after a restart, must write the same bytes: the Redis ledger compares them.
    #[test]
    fn reading_and_writing_again_changes_no_byte(record in record()) {
        let written = encode(&record).unwrap();
        prop_assert_eq!(encode(&decode(written.as_bytes()).unwrap()).unwrap(), written);
    }

    #[test]
    fn no_bytes_do_harm(bytes in vec(any::<u8>(), 0..200)) {
        drop(decode(&bytes));
    }

    // Nearer to the real thing than random bytes: a record cut short, or with one byte changed.
    #[test]
    fn a_damaged_record_does_no_harm(record in record(), at: prop::sample::Index, byte: u8) {
        let written = encode(&record).unwrap().into_bytes();
        let at = at.index(written.len());
        prop_assert!(decode(&written[..at]).is_err());
        let mut changed = written;
        changed[at] = byte;
        drop(decode(&changed));
    }

    #[test]
    fn a_record_of_a_newer_program_is_refused_whatever_is_in_it(schema in SCHEMA + 1.., record in record()) {
        let written = encode(&record).unwrap().replacen(&format!("{{\"z\":{},", form(&record)), "{", 1);
        for text in [written.replacen('{', &format!("{{\"z\":{schema},"), 1), format!(r#"{{"z":{schema},"r":"seven"}}"#)] {
            prop_assert_eq!(decode(text.as_bytes()), Err(CodecError::Newer { found: schema }));
        }
    }

    // Before the members have voted by new rules, the program before this one can take the ledger back.
    #[test]
    fn a_record_without_anything_new_is_of_the_first_form(record in record()) {
        let mut record = before_nonces(record);
        record.owed.clear();
        (record.off, record.request) = (false, None);
        let mut record = before_names(record);
        let is_old = |kind: Kind| !kind.is_third() && !matches!(kind, Kind::PurgeOwed | Kind::RolloutSuperseded | Kind::RolloutStuck);
        record.untold.retain(|notice| is_old(notice.kind));
        record.history.retain(|closed| !closed.outcome.is_new());
        for vote in &mut record.votes {
            (vote.cast.rules, vote.purges.owed_ms, vote.purges.unlisted) = (Rules::FIRST, 0, None);
            vote.plan.narrow.clear();
            vote.closed = vote.closed.take().filter(|outcome| !outcome.is_new());
            vote.purges.listed.values_mut().for_each(|purge| purge.sent = None);
            vote.purges.listed.retain(|_, purge| !matches!(purge.state, PurgeState::Owed(_) | PurgeState::Beyond(_)));
        }
        let written = encode(&record).unwrap();
        prop_assert!(!written.starts_with("{\"z\""), "{}", written);
    }

    // The program before this one would pass over what is new, and drop it with its next write.
    #[test]
    fn a_record_with_a_vote_by_newer_rules_is_of_the_form_of_those_rules(record in record(), mut vote in vote()) {
        let mut record = before_nonces(record);
        without_nonces(&mut vote);
        record.votes.iter_mut().chain(&mut record.owed).for_each(|vote| vote.cast.rules = Rules::FIRST);
        record.untold.retain(|notice| !notice.kind.is_third());
        let mut record = before_names(record);
        vote.name = None;
        for (rules, start) in [(Rules::SECOND, "{\"z\":2,"), (Rules::CURRENT, "{\"z\":3,")] {
            vote.cast.rules = rules;
            record.votes.push(vote.clone());
            let written = encode(&record).unwrap();
            prop_assert!(written.starts_with(start), "{}", written);
        }
    }

    // A program that does not know what counts beside images would take each sight for a change, or none.
    #[test]
    fn a_record_of_more_than_images_is_of_the_fourth_form_and_survives(
        mut record in record(), mut vote in vote(), mut last in passed(), beside in beside(), which in 0..6,
    ) {
        let with = |version: Version| version.with(Some(beside));
        match which {
            0 => record.version = with(record.version),
            1 => record.settled = Some(with(record.version.clone())),
            2 => record.from = Some(with(record.version.clone())),
            3 => {
                last.version = with(last.version);
                record.passed.push(last);
            }
            4 => {
                vote.version = with(vote.version);
                record.votes.push(vote);
            }
            _ => {
                vote.version = with(vote.version);
                record.owed.push(vote);
            }
        }
        let written = encode(&record).unwrap();
        prop_assert!(written.starts_with("{\"z\":4,"), "{}", written);
        prop_assert_eq!(decode(written.as_bytes()).unwrap(), record);
    }

    // That a site is lost is told in a word that came with the third form.
    #[test]
    fn a_record_that_tells_of_a_lost_site_is_of_the_third_form(record in record(), notice in notice()) {
        let untold = vec![Notice { kind: Kind::SiteLost, ..notice }];
        prop_assert_eq!(form(&Record { untold, ..record }), 3);
    }

    // A request that is not answered yet, and that a workload was switched off, must survive it too.
    #[test]
    fn a_record_that_remembers_a_request_or_a_switch_is_not_of_the_first_form(record in record(), seq in seq(), switched: bool) {
        let (off, request) = if switched { (true, None) } else { (false, Some(seq)) };
        let record = Record { off, request, ..record };
        prop_assert!(form(&record) >= 2);
    }

    // What the owner calls the version decides what others compare: a program that dropped it would compare something else.
    #[test]
    fn a_record_with_a_version_of_the_group_is_of_the_third_form(record in record(), group_version in text()) {
        prop_assert_eq!(form(&Record { group_version: Some(group_version), ..record }), 3);
    }

    // Nor may it drop what the others know the workload by, or knew it by when it voted.
    #[test]
    fn a_record_with_a_name_in_the_group_is_of_the_third_form(record in record(), alias in alias(), mut vote in vote(), voted: bool) {
        vote.name = Some(alias.name.clone());
        let mut record = before_names(record);
        if voted { record.votes.push(vote) } else { record.group_name = Some(alias) }
        prop_assert_eq!(form(&record), 3);
    }

    // That a purge is owed, and what of it was sent otherwise than voted for, must survive the program before this one.
    #[test]
    fn a_record_that_says_of_a_purge_what_is_new_is_of_the_second_form(record in record(), vote in vote(), which in 0..6) {
        let record = Record { votes: vec![], owed: vec![], history: vec![], untold: vec![], ..record };
        let (mut record, mut vote) = (before_nonces(before_names(record)), vote);
        without_nonces(&mut vote);
        vote.name = None;
        (vote.cast.rules, vote.closed) = (Rules::FIRST, None);
        vote.purges = VotePurges { listed: BTreeMap::new(), unlisted: None, owed_ms: 0, ..vote.purges };
        let mut purge = Purge::wanted("r".into());
        let closed = Closed { seq: Seq(1), change: String::new(), outcome: Outcome::Owed, why: String::new(), purges: vec![], more: 0, seen: None };
        match which {
            0 => purge.sent = Some(PathSet::default()),
            1 => purge.state = PurgeState::Owed("denied".into()),
            2 => vote.closed = Some(Outcome::Owed),
            3 => record.history.push(closed),
            _ => record.owed.push(vote.clone()),
        }
        vote.purges.listed.insert("E1ABC".parse().unwrap(), purge);
        record.votes.push(vote);
        let written = encode(&record).unwrap();
        prop_assert!(written.starts_with("{\"z\":2,"), "{}", written);
    }

    // Nor may it drop what tells two rollouts of one number apart, whoever counted it.
    #[test]
    fn a_record_with_a_nonce_anywhere_is_of_the_third_form(record in record(), mut vote in vote(), bits in 1_u64.., which in 0..4) {
        let (mut record, nonce) = (before_nonces(record), Nonce(bits));
        record.votes.iter_mut().chain(&mut record.owed).for_each(|vote| vote.cast.rules = Rules::FIRST);
        record.untold.clear();
        record.history.clear();
        let mut record = before_names(record);
        prop_assert!(form(&record) < 3);
        (vote.cast.rules, vote.name) = (Rules::FIRST, None);
        vote.vector.0.insert("eu-1".into(), Component { nonce, ..Component::bare("o".into(), Seq(1)) });
        match which {
            0 => record.nonce = nonce,
            1 => record.last = Some(Brief::of(&vote.vector)),
            2 => record.owed.push(vote),
            _ => record.votes.push(vote),
        }
        prop_assert_eq!(form(&record), 3);
    }

    #[test]
    fn a_record_that_does_not_list_all_its_purges_is_not_of_the_first_form(
        mut record in record(), mut vote in vote(), unlisted in unlisted(),
    ) {
        (vote.cast.rules, vote.purges.unlisted) = (Rules::FIRST, Some(unlisted));
        record.votes = vec![vote];
        prop_assert!(form(&record) >= 2);
    }

    // Whoever sheds hands back what it takes out, and never the word that a purge is complete.
    #[test]
    fn a_record_that_is_too_long_gives_its_notices_back_and_keeps_that_a_purge_is_complete(
        mut record in record(), mut notices in vec(notice(), 1..40), length in 500_usize..3_000,
    ) {
        for (notice, number) in notices.iter_mut().zip(0_u32..) {
            (notice.id, notice.message) = (NoticeId(format!("msg_{number}")), "m".repeat(length));
        }
        record.untold = notices.clone();
        let excess = shed(&mut record);
        prop_assert!(excess.iter().all(|notice| notice.kind != Kind::PurgeCompleted));
        prop_assert_eq!(excess.len() + record.untold.len(), notices.len());
        prop_assert!(excess.iter().chain(&record.untold).all(|notice| notices.contains(notice)));
        let only_ends = record.untold.iter().all(|notice| notice.kind == Kind::PurgeCompleted);
        prop_assert!(encode(&record).is_ok() || (only_ends && record.history.is_empty()));
    }

    // Within one form a newer program may add fields.
    #[test]
    fn a_field_that_is_not_known_is_passed_over(record in record()) {
        let written = encode(&record).unwrap().replacen('{', r#"{"zz":{"new":[1,2]},"#, 1);
        prop_assert_eq!(decode(written.as_bytes()).unwrap(), record);
    }
}

#[test]
fn an_idle_record_takes_no_more_than_200_bytes() {
    let written = encode(&idle()).unwrap();
    println!("{} bytes: {written}", written.len());
    assert!(written.len() <= 200, "{} bytes: {written}", written.len());
    assert!(!written.contains("\"z\""), "the first form is not named");
    let numbered = encode(&Record { nonce: Nonce(u64::MAX), ..idle() }).unwrap();
    println!("{} bytes: {numbered}", numbered.len());
    assert!(numbered.len() <= 200, "{} bytes: {numbered}", numbered.len());
}

#[test]
fn a_record_larger_than_a_ledger_promises_is_not_written() {
    let record = Record { uid: "u".repeat(RECORD_BYTES_MAX), ..idle() };
    assert!(matches!(encode(&record), Err(CodecError::TooLong { bytes }) if bytes > RECORD_BYTES_MAX));
}
