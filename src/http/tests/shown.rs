//! What is on the pages: bounds, searches, the page of a workload, and what the content security policy allows.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use super::*;
use crate::looking::tests::{Account, World, web};
use kernel::id::Seq;
use notices::notice::{About, Kind, Mentions, Notice};
use purge::ports::{CdnError, CdnErrorClass};
use purge::rollouts::browse::ROWS_MAX;

/// What of a page is for people.
async fn page(serving: &Serving, path: &str) -> String {
    body(&ask(serving.addresses().page, "GET", path).await).to_owned()
}

fn notice(name: &str, kind: Kind, seq: u64) -> Notice {
    let mentions = Mentions { hosts: vec!["www.example.com".parse().unwrap()], ..Mentions::default() };
    Notice {
        id: Notice::id_of(name, kind, &seq.to_string()),
        kind,
        at_ms: 0,
        about: About::Workload(WorkloadId::deployment("shop", name), mentions),
        seq: Seq(seq),
        rollout: String::new(),
        change: String::new(),
        message: format!("{} was told", kind.name()),
    }
}

/// Each text between two tags, as the browser hashes it.
fn hashes(page: &str, tag: &str) -> Vec<String> {
    let (open, close) = (format!("<{tag}>"), format!("</{tag}>"));
    let parts = page.split(&open).skip(1).map(|rest| rest.split(&close).next().unwrap());
    parts.map(|text| format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)))).collect()
}

#[actix::test]
async fn the_policy_allows_the_script_and_the_style_of_the_page_and_nothing_else() {
    let serving = start(showing(busy("web"))).await;
    for path in [
        "/",
        "/workloads/shop/web",
        "/workloads/shop/gone",
        "/workloads?q=%0A%3Cscript%3Ealert(1)%3C/script%3E",
        "/pipelines",
        "/repos",
        "/group",
        "/history",
    ] {
        let answer = ask(serving.addresses().page, "GET", path).await;
        let policy = answer.lines().find_map(|line| line.strip_prefix("content-security-policy: ")).unwrap();
        for (tag, source) in [("style", "style-src"), ("script", "script-src")] {
            let inline = hashes(body(&answer), tag);
            assert_eq!(inline.len(), 1, "{path}: {tag}");
            assert!(policy.contains(&format!("{source} {};", inline[0])), "{path}: {policy}");
        }
        assert!(policy.starts_with("default-src 'none';") && !policy.contains("unsafe"), "{policy}");
        for inline in [" style=", " onclick=", " onload=", "<script src", "<link rel=\"stylesheet", "src=\"http"] {
            assert!(!body(&answer).contains(inline), "{path}: {inline}");
        }
    }
    serving.stop().await;
}

#[actix::test]
async fn a_page_of_very_much_is_bounded() {
    let mut seen = busy("web");
    let summary = Summary { state: "x".repeat(200), ..seen.rollouts[0].clone() };
    let id = |number: usize| WorkloadId::deployment("shop", format!("web-{number}"));
    seen.rollouts = (0..10_000).map(|number| Summary { workload: id(number), ..summary.clone() }).collect();
    seen.recent.clone_from(&seen.rollouts);
    seen.quarantined = (0..10_000).map(id).collect();
    let unwell = |number| Unwell { workload: id(number), reason: Reason::Failed, state: "x".repeat(200) };
    seen.unwell = (0..10_000).map(unwell).collect();
    let listing = Listing { rows: seen.rollouts.iter().take(ROWS_MAX).map(row).collect(), matched: 10_000 };
    let front = showing(seen.clone());
    let (_end, ending) = watch::channel(false);
    let window = Window::new(front, TURN_WITHIN, ending);
    let of = |path, query| {
        let asked = asked(path, query).unwrap();
        window.view(&asked, Ok(&seen), &listing, |view| page::render(view, None))
    };
    let board = of("/", "");
    assert!(board.len() < 600_000, "{} bytes", board.len());
    assert!(board.contains("and 9900 more") && board.contains("/workloads?only=needs-a-look"), "where the rest is");
    let html = of("/workloads", "page=3&only=all&q=web%20%26");
    assert!(html.len() < 600_000, "{} bytes", html.len());
    assert!(html.contains("101–150 of 10000") && html.contains("page 3 of 200"), "the pages of the search");
    assert!(
        html.contains(r#"href="/workloads?q=web+%26&amp;only=all&amp;page=4""#),
        "the next page of the same search"
    );
}

#[test]
fn an_address_is_a_search_or_a_workload_and_what_cannot_be_meant_is_left_out() {
    let listed = |text: &str, only, page| Some(Asked::Workloads(Search { text: text.to_owned(), only, page }));
    let workloads = |query: &str| asked("/workloads", query);
    assert_eq!((asked("/", ""), asked("", "q=x")), (Some(Asked::Board), Some(Asked::Board)));
    assert_eq!(workloads(""), listed("", Only::All, 0));
    assert_eq!(workloads("q=shop+web%2F1&only=needs-a-look&page=3&x=y"), listed("shop web/1", Only::Amber, 2));
    for page in ["0", "1", "-1", "x", "99999999999999999999"] {
        assert_eq!(workloads(&format!("page={page}")), listed("", Only::All, 0), "{page}");
    }
    let Some(Asked::Workloads(search)) = workloads(&format!("q={}", "é".repeat(5_000))) else { panic!("a search") };
    assert_eq!(search.text.chars().count(), TEXT_CHARS_MAX);
    assert_eq!(asked("/workloads/shop/web", "q=x"), Some(Asked::Workload(WorkloadId::deployment("shop", "web"))));
    let stateful_set = WorkloadId::new(kernel::id::Kind::StatefulSet, "shop", "web");
    assert_eq!(asked("/workloads/shop/statefulset/web", ""), Some(Asked::Workload(stateful_set)));
    assert_eq!(asked("/history", ""), Some(Asked::History));
    for path in ["/workloads/", "/workloads/shop", "/workloads/shop/", "/workloads/shop/web/x", "/x", "//", "/group/x"]
    {
        assert_eq!(asked(path, ""), None, "{path}");
    }
    for path in ["/workloads/shop/%3Cb%3E", "/workloads/../web", "/workloads/Shop/web"] {
        assert_eq!(asked(path, ""), None, "{path}");
    }
}

#[actix::test]
async fn the_page_of_a_workload_tells_its_story_with_times_and_what_explain_says() {
    let denied = CdnError { class: CdnErrorClass::Denied, message: "<b>denied</b>".into() };
    let world = World { account: Account(Err(denied)), ..World::new(web()) };
    let front = Front { explained: Some(Arc::new(world.sources().await)), ..showing(busy("web")) };
    let chronicle = &front.metrics.chronicle;
    chronicle.note(&notice("web", Kind::RolloutStarted, 7), NOW_MS - 240_000);
    chronicle.note(&notice("web", Kind::RolloutCompleted, 7), NOW_MS - 200_000);
    chronicle.note(&notice("web", Kind::PurgeStarted, 7), NOW_MS - 185_000);
    chronicle.note(&notice("api", Kind::RolloutFailed, 7), NOW_MS);
    let serving = start(front).await;
    page_is(&serving, "/workloads/shop/web", &[], expect_file!["workload.html"]).await;
    let json: serde_json::Value =
        serde_json::from_str(body(&ask(serving.addresses().page, "GET", "/api/v1/state").await)).unwrap();
    assert_eq!(json["told"][1]["kind"], "rollout.completed");
    assert_eq!(json["told"][1]["at_ms"], NOW_MS - 200_000);
    let missing = ask(serving.addresses().page, "GET", "/workloads/shop/gone").await;
    assert!(missing.starts_with("HTTP/1.1 404 ") && missing.contains("shop/gone is not on record here"), "{missing}");
    serving.stop().await;
}

#[actix::test]
async fn all_clear_says_since_when_and_how_long_the_last_purge_took() {
    let front = showing(synced());
    let metrics = front.metrics.clone();
    let serving = start(front).await;
    assert!(page(&serving, "/").await.contains("All clear<span class=\"rest\">: nothing had to be purged since"));
    let grouped = start(showing(Observation { group: Some(Seen::default()), ..synced() })).await;
    assert!(page(&grouped, "/").await.contains("All clear<span class=\"rest\">: no purge was told here since"));
    grouped.stop().await;
    metrics.chronicle.note(&notice("web", Kind::PurgeStarted, 3), NOW_MS - 67_000);
    metrics.chronicle.note(&notice("web", Kind::PurgeCompleted, 3), NOW_MS - 60_000);
    let page = page(&serving, "/").await;
    assert!(page.contains(": all purged since <time") && page.contains("; the last purge took 7s"), "{page}");
    serving.stop().await;
    let mut front = showing(synced());
    front.about.dry_run = true;
    front.metrics.chronicle.note(&notice("web", Kind::PurgeCompleted, 3), NOW_MS - 60_000);
    let serving = start(front).await;
    let rehearsed = self::page(&serving, "/").await;
    assert!(rehearsed.contains("All clear<span class=\"rest\">: all would be purged since <time"), "{rehearsed}");
    serving.stop().await;
}

/// At rest and complete; what `of` makes of it.
async fn page_of_one(of: impl FnOnce(&mut Observation)) -> String {
    let mut seen = busy("web");
    seen.rollouts[0].conditions.clear();
    seen.rollouts[0].stage = Stage::Idle;
    (seen.quarantined, seen.deliveries) = (Vec::new(), Vec::new());
    of(&mut seen);
    let serving = start(showing(seen)).await;
    let shown = page(&serving, "/workloads/shop/web").await;
    serving.stop().await;
    shown
}

#[actix::test]
async fn the_page_of_a_workload_is_not_green_while_its_purge_is_refused_or_its_group_is_held() {
    assert!(page_of_one(|_| {}).await.contains("health busy"));
    let refused = page_of_one(|seen| seen.rollouts[0].versions.stale = Some("AccessDenied".to_owned())).await;
    assert!(refused.contains("health bad") && refused.contains("shop/web is stale at the edge: AccessDenied"));
    assert!(refused.contains("allclear purge shop/web --retry"), "{refused}");
    let hold = Some("two clusters have one name".to_owned());
    let held = page_of_one(|seen| seen.group = Some(Seen { hold, ..Seen::default() })).await;
    assert!(held.contains("health warn") && held.contains("The group is held: two clusters have one name"), "{held}");
}

#[actix::test]
async fn what_needs_a_look_says_what_to_do_and_leads_there() {
    let unwell = Reason::ALL.map(|reason| Unwell {
        workload: WorkloadId::deployment("shop", reason.name()),
        reason,
        state: "it did not end well".to_owned(),
    });
    let serving = start(showing(Observation { unwell: unwell.into(), ..synced() })).await;
    page_is(&serving, "/", &["health", "board"], expect_file!["unwell.html"]).await;
    serving.stop().await;
}

#[actix::test]
async fn the_board_has_a_cell_for_each_cluster_with_its_own_reason_and_what_is_old_says_so() {
    let (seen, _) = gallery::clusters();
    let serving = start(showing(seen)).await;
    page_is(&serving, "/", &["board"], expect_file!["clusters.html"]).await;
    let one = page(&serving, "/workloads/shop/web").await;
    assert!(one.contains("ImagePullBackOff") && one.contains("last known: us-1 has not been heard from"), "{one}");
    let json: serde_json::Value =
        serde_json::from_str(body(&ask(serving.addresses().page, "GET", "/api/v1/state").await)).unwrap();
    assert_eq!(json["parts"][0]["members"][0]["for_s"], 260);
    assert_eq!(json["parts"][1]["members"][0]["stale"], "/ is of before the purge");
    serving.stop().await;
}

#[actix::test]
async fn a_cluster_that_holds_the_others_up_says_so_first() {
    let blocks = "eu-2 waits for this cluster, since it is at web: 1, complete";
    let tally = |phase: &str| Tally {
        workload: WorkloadId::deployment("shop", "web"),
        known_as: None,
        state: String::new(),
        older: Vec::new(),
        next: None,
        blocks: Some(blocks.to_owned()),
        members: vec![Ballot {
            member: "eu-1".to_owned(),
            is_self: true,
            phase: phase.to_owned(),
            ..Ballot::default()
        }],
        purges: Vec::new(),
    };
    for (phase, is_amber) in [("complete", true), ("rolling", false)] {
        let mut seen = busy("web");
        seen.deliveries.clear();
        seen.quarantined.clear();
        seen.rollouts[0].conditions.clear();
        seen.tallies.push(tally(phase));
        let serving = start(showing(seen)).await;
        let first = page(&serving, "/").await;
        assert_eq!(first.contains(&format!("shop/web: {blocks}<span class=\"rest\">")), is_amber, "{first}");
        assert_eq!(first.contains("health warn"), is_amber, "{first}");
        let own = page(&serving, "/workloads/shop/web").await;
        assert_eq!(own.contains(&format!("{blocks}<span class=\"rest\">")), is_amber, "{own}");
        serving.stop().await;
    }
}
