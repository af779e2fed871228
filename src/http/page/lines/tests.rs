use super::*;
use crate::looking::About;
use purge::rollouts::part::PartsSeen;

fn of(name: &str, at_edge: Has) -> Summary {
    let purged = at_edge == Has::Same;
    let versions = Versions { at_edge, purged, runs: "app: 2".to_owned(), ..Versions::default() };
    let id = WorkloadId::deployment("shop", name);
    Summary { phase: "complete", versions, seq: 4, ..Summary::unknown(&id, "purged".to_owned()) }
}

fn moving(name: &str, stage: Stage) -> Summary {
    Summary { stage, ..of(name, Has::Another) }
}

fn unwell(name: &str, reason: Reason) -> Unwell {
    Unwell { workload: WorkloadId::deployment("shop", name), reason, state: "not purged: why".to_owned() }
}

/// Each row's name and mood.
fn shown(seen: &Observation) -> Vec<(String, Mood)> {
    with(seen, |lines| lines.iter().map(|line| (line.workload.name.clone(), line.mood())).collect())
}

fn with<T>(seen: &Observation, of: impl FnOnce(&[Facts<'_>]) -> T) -> T {
    with_dry_run(false, seen, of)
}

fn with_dry_run<T>(dry_run: bool, seen: &Observation, of: impl FnOnce(&[Facts<'_>]) -> T) -> T {
    let about = About { member: "eu-1".to_owned(), group: "default".to_owned(), dry_run };
    let listing = crate::actors::browse::Listing::default();
    let view = View {
        about: &about,
        asked: &super::super::Asked::Board,
        draining: false,
        seen: Ok(seen),
        listing: &listing,
        moments: &[],
        passages: &[],
        last_purge: None,
        now_ms: 0,
    };
    of(&lines(&view, seen).0)
}

fn refused(summary: Summary) -> Summary {
    let versions = Versions { stale: Some("AccessDenied".to_owned()), ..summary.versions };
    Summary { versions, ..summary }
}

#[test]
fn the_worst_comes_first_and_each_colour_means_one_thing() {
    let seen = Observation {
        rollouts: vec![moving("moves", Stage::Rollout), refused(moving("refused", Stage::Purge))],
        recent: vec![of("well", Has::Same), of("edgeless", Has::NoEdge), of("overtaken", Has::Mixed)],
        unwell: vec![unwell("failed", Reason::Failed), unwell("given-up", Reason::Withdrawn)],
        quarantined: vec![WorkloadId::deployment("shop", "aside")],
        ..Observation::default()
    };
    let expected = [
        ("given-up", Mood::Bad),
        ("refused", Mood::Bad),
        ("aside", Mood::Warn),
        ("failed", Mood::Warn),
        ("moves", Mood::Busy),
        ("edgeless", Mood::Good),
        ("well", Mood::Good),
        ("overtaken", Mood::Rest),
    ];
    assert_eq!(shown(&seen), expected.map(|(name, mood)| (name.to_owned(), mood)));
}

#[test]
fn what_moves_again_has_one_row_and_its_end_before_is_not_shown() {
    let seen = Observation {
        rollouts: vec![moving("web", Stage::Rollout)],
        recent: vec![of("web", Has::Same)],
        ..Observation::default()
    };
    assert_eq!(shown(&seen), [("web".to_owned(), Mood::Busy)]);
}

#[test]
fn an_edge_that_another_member_knows_to_be_stale_is_amber_at_rest_if_it_was_heard_from() {
    let part = |member: &str, stale: Option<&str>| PartSeen {
        member: member.to_owned(),
        is_self: member == "eu-1",
        stale: stale.map(str::to_owned),
        ..PartSeen::default()
    };
    let seen = |theirs: PartSeen| Observation {
        recent: vec![of("web", Has::Same)],
        parts: vec![PartsSeen {
            workload: WorkloadId::deployment("shop", "web"),
            members: vec![part("eu-1", None), theirs],
        }],
        ..Observation::default()
    };
    let mood = |seen: &Observation| with(seen, |lines| lines[0].mood());
    let stale = seen(part("us-1", Some("/ is of before")));
    assert_eq!(mood(&stale), Mood::Warn);
    let headline = with(&stale, |lines| lines[0].headline());
    assert_eq!(headline, "shop/web is stale at the edge, as us-1 says: / is of before");
    let remedy = with(&stale, |lines| lines[0].remedy());
    assert!(remedy.is_some_and(|remedy| remedy.starts_with("ask there: ")), "{remedy:?}");
    let silent = Some("has not been heard from for more than a minute".to_owned());
    assert_eq!(mood(&seen(PartSeen { silent, ..part("us-1", Some("/ is of before")) })), Mood::Good);
    let moves = Observation { rollouts: vec![moving("web", Stage::Purge)], ..stale };
    assert_eq!(mood(&moves), Mood::Busy, "a refusal may end with the next attempt");
}

#[test]
fn a_troubled_pod_and_a_held_group_are_amber_while_it_moves() {
    let group = |hold: Option<&str>| {
        Some(purge::broker::Seen { hold: hold.map(str::to_owned), ..purge::broker::Seen::default() })
    };
    let pod = Some(("web-x4".to_owned(), "ImagePullBackOff".to_owned()));
    let mut troubled = moving("web", Stage::Rollout);
    troubled.versions.pod = pod;
    let mut seen = Observation { rollouts: vec![troubled], group: group(None), ..Observation::default() };
    assert_eq!(shown(&seen)[0].1, Mood::Warn);
    with(&seen, |lines| {
        assert_eq!(lines[0].headline(), "shop/web waits for its pod web-x4: ImagePullBackOff");
        assert_eq!(lines[0].command().as_deref(), Some("kubectl -n shop describe pod web-x4"));
    });
    seen.rollouts[0].versions.pod = None;
    assert_eq!(shown(&seen)[0].1, Mood::Busy);
    seen.group = group(Some("two clusters have one name"));
    assert_eq!(shown(&seen)[0].1, Mood::Warn);
}

#[test]
fn nothing_is_said_to_be_purged_that_is_not() {
    let mut seen = Observation {
        rollouts: vec![moving("moves", Stage::Rollout), refused(moving("refused", Stage::Purge))],
        recent: vec![of("well", Has::Same), of("edgeless", Has::NoEdge), of("overtaken", Has::Mixed)],
        unwell: vec![unwell("failed", Reason::Failed), unwell("old", Reason::Stale)],
        ..Observation::default()
    };
    let mut back = of("back", Has::Same);
    back.versions.purged = false;
    seen.recent.push(back);
    let purged = |dry_run| -> BTreeMap<String, (Mood, String)> {
        let cell = |line: &Facts<'_>| (line.purged().mood, line.purged().words);
        with_dry_run(dry_run, &seen, |lines| {
            lines.iter().map(|line| (line.workload.name.clone(), cell(line))).collect()
        })
    };
    let expected = [
        ("back", (Mood::Rest, "edge has it")),
        ("edgeless", (Mood::Rest, "no edge")),
        ("failed", (Mood::Rest, "not purged")),
        ("moves", (Mood::Rest, "not yet")),
        ("old", (Mood::Bad, "stale")),
        ("overtaken", (Mood::Rest, "–")),
        ("refused", (Mood::Bad, "not purged")),
        ("well", (Mood::Good, "purged")),
    ];
    let expected = expected.map(|(name, (mood, words))| (name.to_owned(), (mood, words.to_owned())));
    assert_eq!(purged(false), BTreeMap::from(expected));
    assert_eq!(purged(true)["well"].1, "would be purged", "in a dry run nothing is");
    let seen = Observation { rollouts: vec![moving("web", Stage::Purge)], ..Observation::default() };
    let doing = |dry_run| with_dry_run(dry_run, &seen, |lines| lines[0].headline());
    assert_eq!((doing(false), doing(true)), ("shop/web is being purged".into(), "shop/web would be purged now".into()));
}

#[test]
fn a_command_names_what_mends_it_and_is_never_made_of_an_unusual_name() {
    let hostile = "web;reboot";
    let seen = Observation {
        rollouts: vec![refused(moving("api", Stage::Purge)), refused(moving(hostile, Stage::Purge))],
        unwell: vec![unwell("docs", Reason::Partly), unwell("search", Reason::Failed)],
        recent: vec![of("well", Has::Same)],
        ..Observation::default()
    };
    let commands: BTreeMap<String, Option<String>> =
        with(&seen, |lines| lines.iter().map(|line| (line.workload.name.clone(), line.command())).collect());
    assert_eq!(commands["api"].as_deref(), Some("allclear purge shop/api --retry"));
    assert_eq!(commands["docs"].as_deref(), Some("allclear purge shop/docs"));
    assert_eq!(commands["search"].as_deref(), Some("allclear explain shop/search"));
    assert_eq!((&commands[hostile], &commands["well"]), (&None, &None));
}
