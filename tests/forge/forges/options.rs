//! What teams want of their requests: labels, reviewers, drafts, words of their own, and a merge by the forge.

use objects::pipeline::options::{Lacks, MergeMethod, RequestOptions, Reviewer, Template};
use objects::pipeline::proposal::{ForgeKind, Order, Proposed, Request, RequestState};
use objects::ports::pipeline::Forge;
use purge::ports::PortError;
use sandbox::forge::{PullState, account};
use sandbox::http::{Action, Fault, When};

use super::desk::{Desk, KINDS, TOKEN};

/// Those whose requests have labels and merges by themselves.
const ABLE: [ForgeKind; 3] = [ForgeKind::GitHub, ForgeKind::GitLab, ForgeKind::Gitea];

fn wanting(order: Order, options: RequestOptions) -> Order {
    order.repository.forge.can(&options).expect("it can");
    Order { options, ..order }
}

fn has_labels(kind: ForgeKind) -> bool {
    ABLE.contains(&kind)
}

/// A person, as this forge knows people.
fn user(kind: ForgeKind, name: &str) -> Reviewer {
    Reviewer::User(if kind == ForgeKind::BitbucketCloud { account(name) } else { name.to_owned() })
}

fn labelled(kind: ForgeKind) -> RequestOptions {
    let labels = if has_labels(kind) { &["promotion", "prod"][..] } else { &[] };
    let team = [ForgeKind::GitHub, ForgeKind::Gitea].contains(&kind).then(|| Reviewer::Team("sre".to_owned()));
    RequestOptions {
        labels: labels.iter().map(|label| (*label).to_owned()).collect(),
        reviewers: std::iter::once(user(kind, "ann")).chain(team).collect(),
        ..RequestOptions::default()
    }
}

fn names(kind: ForgeKind) -> &'static [&'static str] {
    if [ForgeKind::GitHub, ForgeKind::Gitea].contains(&kind) { &["ann", "team:sre"] } else { &["ann"] }
}

/// The order of a look at a request that lacked these.
fn lacking(order: Order, what: &[&str]) -> Order {
    let lacks = what.iter().map(|what| ((*what).to_owned(), "why".to_owned())).collect();
    Order { lacks, ..order }
}

fn done() -> Result<RequestState, PortError> {
    Ok(RequestState::Lacks(Lacks::new()))
}

#[tokio::test]
async fn a_request_gets_its_labels_and_its_reviewers_once_and_what_people_change_in_them_stays() {
    for kind in KINDS {
        let desk = Desk::new(kind).await;
        let order = wanting(desk.order(1, "1.2.3"), labelled(kind));
        let Request { lacks, number, .. } = desk.opened(&order).await;
        assert_eq!(lacks, Lacks::new(), "{kind:?}");
        let pull = desk.pull();
        assert_eq!(pull.reviewers, names(kind), "{kind:?}");
        let labels: &[&str] = if has_labels(kind) { &["promotion", "prod"] } else { &[] };
        assert_eq!(pull.labels, labels, "{kind:?}");
        desk.forge.edit(1, |pull| {
            pull.labels.clear();
            pull.reviewers = vec!["bob".to_owned()];
        });
        let sent = desk.http.sent();
        assert_eq!(desk.forges.look(&order, number).await, Ok(RequestState::Open));
        assert!(desk.http.sent() > sent, "it was looked at");
        assert_eq!((desk.pull().labels, desk.pull().reviewers), (Vec::new(), vec!["bob".to_owned()]), "{kind:?}");
        let later = wanting(desk.order(2, "1.3.0"), labelled(kind));
        assert_eq!(desk.opened(&later).await.lacks, Lacks::new());
        let now = desk.pull();
        assert!(now.reviewers.contains(&"ann".to_owned()) && now.reviewers.contains(&"bob".to_owned()), "{now:?}");
    }
}

#[tokio::test]
async fn whom_the_forge_does_not_know_is_named_and_keeps_no_promotion_from_being_open() {
    for kind in KINDS {
        let desk = Desk::new(kind).await;
        let reviewers = ["eve", "bob"].map(|name| user(kind, name)).into();
        let eve = user(kind, "eve").to_string();
        let order = wanting(desk.order(1, "1.2.3"), RequestOptions { reviewers, ..labelled(kind) });
        let lacks = desk.opened(&order).await.lacks;
        assert_eq!(lacks.keys().collect::<Vec<_>>(), [&eve], "{kind:?}: {lacks:?}");
        assert!(!lacks[&eve].is_empty() && !lacks[&eve].contains(TOKEN), "{kind:?}: {lacks:?}");
        assert_eq!(desk.pull().labels.is_empty(), !has_labels(kind), "the rest is done");
        assert_eq!(desk.pull().reviewers, ["bob"], "{kind:?}");
        // What people changed meanwhile is no part of what is tried again.
        desk.forge.edit(1, |pull| {
            pull.labels.clear();
            pull.reviewers.clear();
        });
        let looked = desk.forges.look(&lacking(order.clone(), &[&eve]), 1).await;
        assert!(matches!(&looked, Ok(RequestState::Lacks(lacks)) if lacks.contains_key(&eve)), "{kind:?}: {looked:?}");
        assert_eq!((desk.pull().labels, desk.pull().reviewers), (Vec::new(), Vec::new()), "{kind:?}");
        let ann = user(kind, "ann");
        let name = ann.to_string();
        let mended = Order { options: RequestOptions { reviewers: vec![ann], ..labelled(kind) }, ..order };
        assert_eq!(desk.forges.look(&lacking(mended, &[&name]), 1).await, done(), "{kind:?}");
        assert_eq!(desk.pull().reviewers, ["ann"], "{kind:?}");
    }
}

#[tokio::test]
async fn a_draft_is_one_and_stays_what_people_make_of_it() {
    for kind in ABLE.into_iter().chain([ForgeKind::BitbucketCloud]) {
        let desk = Desk::new(kind).await;
        let options = || RequestOptions { draft: true, ..RequestOptions::default() };
        let order = wanting(desk.order(1, "1.2.3"), options());
        desk.opened(&order).await;
        let (mark, is_draft) = match kind {
            ForgeKind::GitLab => ("Draft: ", false),
            ForgeKind::Gitea => ("WIP: ", true),
            ForgeKind::GitHub | ForgeKind::BitbucketServer | ForgeKind::BitbucketCloud => ("", true),
        };
        let words = "Promote shop/web in prod to";
        assert_eq!((desk.pull().title, desk.pull().draft), (format!("{mark}{words} 1.2.3"), is_draft), "{kind:?}");
        let version = desk.pull().version;
        desk.opened(&order).await;
        assert_eq!(desk.pull().version, version, "the mark is no other title");
        desk.opened(&wanting(desk.order(2, "1.3.0"), options())).await;
        assert_eq!((desk.pull().title, desk.pull().draft), (format!("{mark}{words} 1.3.0"), is_draft), "{kind:?}");
        desk.forge.edit(1, |pull| {
            pull.title = pull.title.trim_start_matches(mark).to_owned();
            pull.draft = false;
        });
        desk.opened(&wanting(desk.order(3, "1.4.0"), options())).await;
        let now = desk.pull();
        assert_eq!(
            (now.title, now.draft),
            (format!("{words} 1.4.0"), false),
            "{kind:?}: a person said that it is ready"
        );
    }
}

#[tokio::test]
async fn a_team_has_its_own_words_and_ours_stay_where_others_look_for_them() {
    for kind in KINDS {
        let desk = Desk::new(kind).await;
        let options = RequestOptions {
            title: Some(
                Template::title("chore({{ environment }}): {{ pipeline }} {{ from }} to {{ revision }}").unwrap(),
            ),
            body: Some(Template::body("Ask **@ann**.\n\n{{ revision }} replaces {{ from }}.").unwrap()),
            ..RequestOptions::default()
        };
        let order = wanting(desk.order(1, "1.2.3"), options);
        desk.opened(&order).await;
        let pull = desk.pull();
        assert_eq!(pull.title, "chore(prod): web 1.2.2 to 1.2.3");
        let (head, rest) = pull.body.split_once("</details>").expect("the head is ours");
        assert!(head.contains("\nshop/web/prod\n") && head.contains("promotion: id-of-1"), "{head}");
        assert!(rest.trim().starts_with("Ask **@ann**.\n\n`1.2.3` replaces `1.2.2`.\n"), "{rest}");
        assert!(rest.contains("\n- to: `1.2.3`\n"), "{rest}");
        assert_eq!(desk.git(&["show", "-s", "--format=%s", super::HEAD]), pull.title);
        let version = desk.pull().version;
        desk.opened(&order).await;
        assert_eq!(desk.pull().version, version, "{kind:?}: nothing is said twice");
    }
}

#[tokio::test]
async fn a_forge_merges_by_itself_also_what_was_made_anew_unless_a_person_took_that_back() {
    for kind in ABLE {
        let desk = Desk::new(kind).await;
        let options = RequestOptions { auto_merge: Some(MergeMethod::Squash), ..RequestOptions::default() };
        let order = wanting(desk.order(1, "1.2.3"), options);
        let request = desk.opened(&order).await;
        if kind == ForgeKind::GitLab {
            // It would merge without waiting for the pipeline that is about to come.
            assert!(request.lacks["autoMerge"].contains("no pipeline yet"), "{:?}", request.lacks);
            assert_eq!(desk.pull().merge_later, None);
            desk.forge.edit(1, |pull| pull.has_pipeline = true);
            assert_eq!(desk.forges.look(&lacking(order.clone(), &["autoMerge"]), 1).await, done());
        } else {
            assert_eq!(request.lacks, Lacks::new(), "{kind:?}");
        }
        let how = if kind == ForgeKind::GitHub { "SQUASH" } else { "squash" };
        assert_eq!(desk.pull().merge_later, Some((how.to_owned(), desk.tip())), "{kind:?}");
        // Once more changes nothing: an answer may have been lost.
        assert_eq!(desk.forges.look(&lacking(order.clone(), &["autoMerge"]), 1).await, done(), "{kind:?}");
        let change_base = |words: &str| {
            let base = super::VALUES.replace("image:", &format!("# {words}\r\nimage:"));
            desk.git.commit(super::REPOSITORY, "main", &[(super::FILE, base.as_bytes())]).expect("a commit");
        };
        let before = desk.tip();
        change_base("changed");
        let looked = desk.forges.look(&order, 1).await;
        assert_eq!(looked, if kind == ForgeKind::GitLab { done() } else { Ok(RequestState::Open) });
        assert_ne!(desk.tip(), before, "it is made anew on its base");
        assert_eq!(desk.pull().merge_later.map(|(how, _)| how), Some(how.to_owned()), "{kind:?}");
        // A person takes it back: neither a look nor another base sets it again.
        desk.forge.edit(1, |pull| pull.merge_later = None);
        assert_eq!(desk.forges.look(&order, 1).await, Ok(RequestState::Open));
        change_base("changed again");
        assert_eq!(desk.forges.look(&order, 1).await, Ok(RequestState::Open));
        assert_eq!(desk.pull().merge_later, None, "{kind:?}");
    }
}

#[tokio::test]
async fn a_set_is_one_request_and_each_app_of_it_must_have_its_marker() {
    let desk = Desk::new(ForgeKind::GitHub).await;
    let apps = ["api", "web"].map(str::to_owned).to_vec();
    let order = Order { apps, ..desk.order(1, "api=4.5.0,web=1.2.3") };
    let marked = |api: &str, web: &str| {
        format!(
            "api: {api} # {{\"$promotion\": \"shop:web/api:prod\"}}\nweb: {web} # {{\"$promotion\": \"shop:web/web:prod\"}}\n"
        )
    };
    let file = "apps/web/set.yaml";
    let one = marked("4.4", "1.2.2").lines().next().expect("a line").to_owned();
    desk.git.commit(super::REPOSITORY, "main", &[(file, one.as_bytes())]).expect("a commit");
    let refused = desk.forges.propose(&order).await.expect_err("web has none").to_string();
    assert!(refused.contains("\"shop:web/web:prod\""), "{refused}");
    desk.git.commit(super::REPOSITORY, "main", &[(file, marked("4.4", "1.2.2").as_bytes())]).expect("a commit");
    desk.opened(&order).await;
    assert_eq!(desk.git(&["show", &format!("{}:{file}", super::HEAD)]), marked("4.5.0", "1.2.3").trim());
    assert_eq!(desk.pull().title, "Promote shop/web in prod to api=4.5.0,web=1.2.3");
    let other = Order { apps: vec!["api".to_owned(), "db".to_owned()], ..desk.order(2, "api=4.5.0,web=1.2.3") };
    let refused = desk.forges.propose(&other).await.expect_err("no such set").to_string();
    assert!(refused.contains("is no set of api and db"), "{refused}");
}

#[tokio::test]
async fn where_nothing_is_left_to_wait_for_nothing_is_merged_by_us() {
    let desk = Desk::new(ForgeKind::GitHub).await;
    let options = RequestOptions { auto_merge: Some(MergeMethod::Merge), ..RequestOptions::default() };
    let order = wanting(desk.order(1, "1.2.3"), options);
    desk.opened(&Order { options: RequestOptions::default(), ..order.clone() }).await;
    desk.forge.edit(1, |pull| pull.is_clean = true);
    let looked = desk.forges.look(&lacking(order, &["autoMerge"]), 1).await;
    let Ok(RequestState::Lacks(lacks)) = looked else { panic!("{looked:?}") };
    assert!(lacks["autoMerge"].contains("require a check or a review"), "{lacks:?}");
    assert_eq!(desk.pull().state, PullState::Open);
}

#[tokio::test]
async fn what_is_wanted_is_there_whatever_answer_is_lost() {
    for kind in ABLE {
        for after in 0..3 {
            let mut desk = Desk::new(kind).await;
            let order = wanting(desk.order(1, "1.2.3"), labelled(kind));
            let is_wish = |request: &sandbox::http::Request| {
                request.path.ends_with("/labels")
                    || request.path.ends_with("/requested_reviewers")
                    || request.method == http::Method::PUT
            };
            desk.server.inject(Fault::once(When::After, Action::Cut).matching(is_wish));
            let first = desk.forges.propose(&order).await.expect("it is open");
            let Proposed::Open(Request { lacks, .. }) = first else { panic!("{kind:?}: {first:?}") };
            assert!(!lacks.is_empty(), "{kind:?}");
            // A keeper of a new life knows of no rest.
            desk.restart();
            for _ in 0..after {
                assert_eq!(desk.opened(&order).await.lacks, Lacks::new());
            }
            let lacks = if after == 0 { lacks } else { Lacks::new() };
            let expected = if lacks.is_empty() { Ok(RequestState::Open) } else { done() };
            assert_eq!(desk.forges.look(&Order { lacks, ..order.clone() }, 1).await, expected, "{kind:?}");
            assert_eq!(desk.pull().labels.len(), 2, "{kind:?}");
            assert_eq!(desk.pull().reviewers, names(kind), "{kind:?}");
        }
    }
}
