//! Runs of Repos, reported to each kind of forge.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use forge::Http;
use forge::keeper::Keeper;
use forge::report::ForgeReports;
use kernel::id::RepoId;
use kernel::names::destination::Purpose;
use objects::ports::Secrets;
use objects::ports::repo::{Reports, Saying};
use objects::repo::report::Standing;
use objects::repo::spec::{Detail, Provider, ReportTo};
use purge::ports::PortError;
use sandbox::forge::{ForgeHost, Kind, Pull, Table};
use sandbox::http::{Action, Fault, Reply, Request, Server, StandIn, When};

use crate::heads::Stopped;
use crate::scene::Plain;

const FORGES: [(Provider, Kind); 3] =
    [(Provider::GitHub, Kind::GitHub), (Provider::GitLab, Kind::GitLab), (Provider::Gitea, Kind::Gitea)];

const TOKEN: &str = "forge-token-hunter2";

const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const B: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

struct Safe;

#[async_trait]
impl Secrets for Safe {
    async fn read(&self, namespace: &str, name: &str, _: Purpose) -> Result<BTreeMap<String, Vec<u8>>, PortError> {
        assert_eq!((namespace, name), ("platform", "forge"));
        Ok([("token".to_owned(), TOKEN.as_bytes().to_vec())].into())
    }
}

struct Desk {
    forge: Arc<ForgeHost>,
    server: Server,
    reports: ForgeReports,
    provider: Provider,
}

impl Desk {
    /// A forge with an open request from each of these branches into `main`, each at its commit.
    async fn new(provider: Provider, kind: Kind, branches: &[(&str, &str)]) -> Self {
        let table = Arc::new(Table::default());
        branches.iter().for_each(|(branch, commit)| table.set(branch, commit));
        let forge = Arc::new(ForgeHost::new(kind, "shop/infra", TOKEN, table));
        for (branch, commit) in branches {
            forge.add(Pull { commit: (*commit).to_owned(), ..Pull::new(branch, "main", "A change", "") });
        }
        let server = Server::start(Arc::clone(&forge) as Arc<dyn StandIn>).await.expect("loopback");
        let keeper = Keeper::new(Arc::new(Stopped::default()));
        let reports = ForgeReports::new(Arc::new(Plain::new()) as Arc<dyn Http>, Arc::new(Safe), keeper);
        Self { forge, server, reports, provider }
    }

    fn saying(&self, name: &str, commit: &str, standing: Standing, comment: Option<&str>) -> Saying {
        Saying {
            repo: RepoId::new("platform", name),
            uid: format!("uid-of-{name}"),
            url: format!("{}/shop/infra.git", self.server.url()),
            to: ReportTo { provider: self.provider, secret: "forge".to_owned(), detail: Detail::Numbers },
            revision: commit.parse().expect("a commit's id"),
            standing,
            summary: format!("words of {name}"),
            comment: comment.map(str::to_owned),
            again: false,
        }
    }

    fn comments(&self, number: usize) -> Vec<String> {
        self.forge.pulls()[number - 1].comments.clone()
    }

    /// The states of a commit, by name and state.
    fn states(&self) -> Vec<(String, String, String)> {
        self.forge.states().into_iter().map(|one| (one.commit, one.name, one.state)).collect()
    }

    fn writes(&self) -> usize {
        self.server.seen().iter().filter(|seen| seen.method != "GET").count()
    }
}

#[tokio::test]
async fn a_run_is_a_state_of_its_commit_and_one_comment_that_is_rewritten_in_place() {
    for (provider, kind) in FORGES {
        let desk = Desk::new(provider, kind, &[("one", A), ("other", B)]).await;
        let begun = desk.saying("infra", A, Standing::Pending, None);
        assert_eq!(desk.reports.say(&begun).await, Ok(0), "{kind:?}");
        assert!(desk.comments(1).is_empty());
        let planned = desk.saying("infra", A, Standing::Success, Some("2 to add\n"));
        assert_eq!(desk.reports.say(&planned).await, Ok(1), "{kind:?}");
        let failed = desk.saying("infra", A, Standing::Failure, Some("it failed\n"));
        assert_eq!(desk.reports.say(&failed).await, Ok(1), "{kind:?}");
        let comment = format!("{}\nit failed", failed.mark(1));
        let said: Vec<String> = desk.comments(1).iter().map(|one| one.trim().to_owned()).collect();
        assert_eq!((said, desk.comments(2)), (vec![comment], Vec::new()), "{kind:?}");
        let ended = if kind == Kind::GitLab { "failed" } else { "failure" };
        let state = |state: &str| (A.to_owned(), "allclear/platform/infra".to_owned(), state.to_owned());
        assert_eq!(desk.states(), [state("pending"), state("success"), state(ended)], "{kind:?}");
    }
}

#[tokio::test]
async fn beside_pending_gitlab_shows_what_stays_true_for_it_keeps_the_first_words() {
    for (provider, kind) in FORGES {
        let desk = Desk::new(provider, kind, &[]).await;
        for standing in [Standing::Pending, Standing::Success] {
            assert_eq!(desk.reports.say(&desk.saying("infra", A, standing, None)).await, Ok(0), "{kind:?}");
        }
        let words: Vec<String> = desk.forge.states().into_iter().map(|state| state.words).collect();
        let pending = if kind == Kind::GitLab { "the run is not over yet" } else { "words of infra" };
        assert_eq!(words, [pending, "words of infra"], "{kind:?}");
    }
}

#[tokio::test]
async fn lists_that_are_too_long_are_not_taken_for_lists_without_ours() {
    let (provider, kind) = FORGES[2];
    let desk = Desk::new(provider, kind, &[]).await;
    for _ in 0..1_100 {
        desk.forge.add(Pull { from_fork: true, ..Pull::new("other", "main", "A change", "") });
    }
    let refused = desk.reports.say(&saying_at(&desk)).await.expect_err("there may be one");
    assert!(refused.lasting && refused.why.contains("more than 1000 open requests"), "{}", refused.why);
    for (provider, kind) in FORGES {
        let desk = Desk::new(provider, kind, &[("one", A)]).await;
        desk.forge.edit(1, |pull| pull.comments = vec!["chatter".to_owned(); 1_100]);
        let refused = desk.reports.say(&saying_at(&desk)).await.expect_err("ours may be there");
        assert!(refused.lasting && refused.why.contains("more than 1000 comments"), "{kind:?}: {}", refused.why);
        assert_eq!(desk.comments(1).len(), 1_100);
    }
}

fn saying_at(desk: &Desk) -> Saying {
    desk.saying("infra", A, Standing::Success, Some("2 to add\n"))
}

#[tokio::test]
async fn an_answer_that_is_too_long_is_not_read() {
    for (provider, kind) in FORGES {
        let desk = Desk::new(provider, kind, &[("one", A)]).await;
        let long = format!(r#"[{{"id": 1, "body": "{}"}}]"#, "x".repeat(5 << 20));
        let comments = |request: &Request| request.path.ends_with("/comments") || request.path.ends_with("/notes");
        let reply = Reply::full(200, "application/json", long);
        desk.server.inject(Fault::once(When::Before, Action::Answer(reply)).matching(comments));
        let refused = desk.reports.say(&saying_at(&desk)).await.expect_err("too long");
        assert!(refused.why.contains("longer than 4194304 bytes"), "{kind:?}: {}", refused.why);
    }
}

#[tokio::test]
async fn what_is_said_once_more_changes_nothing_and_each_repo_has_a_comment_of_its_own() {
    for (provider, kind) in FORGES {
        let desk = Desk::new(provider, kind, &[("one", A)]).await;
        for name in ["infra", "network"] {
            let pending = desk.saying(name, A, Standing::Pending, Some("it waits for a yes\n"));
            assert_eq!(desk.reports.say(&pending).await, Ok(1));
            let (comments, writes) = (desk.comments(1), desk.writes());
            assert_eq!(desk.reports.say(&Saying { again: true, ..pending.clone() }).await, Ok(1));
            assert_eq!(desk.writes(), writes, "{kind:?}: nothing is written");
            assert_eq!(desk.reports.say(&pending).await, Ok(1), "{kind:?}: also where the state stays");
            assert_eq!(desk.comments(1), comments);
        }
        assert_eq!(desk.comments(1).len(), 2);
    }
}

#[tokio::test]
async fn each_open_request_with_the_commit_at_its_head_has_the_comment_and_no_other_one() {
    for (provider, kind) in FORGES {
        let desk = Desk::new(provider, kind, &[("one", A), ("two", A), ("other", B), ("closed", A)]).await;
        desk.forge.close(4);
        // It holds the commit, under another one.
        desk.forge.edit(3, |pull| pull.body = format!("after {A}"));
        let saying = desk.saying("infra", A, Standing::Success, Some("words\n"));
        assert_eq!(desk.reports.say(&saying).await, Ok(2), "{kind:?}");
        let counts = desk.forge.pulls().iter().map(|pull| pull.comments.len()).collect::<Vec<_>>();
        assert_eq!(counts, [1, 1, 0, 0], "{kind:?}");
        let none = desk.saying("infra", &"c".repeat(40), Standing::Success, Some("words\n"));
        assert_eq!(desk.reports.say(&none).await, Ok(0), "{kind:?}");
    }
}

#[tokio::test]
async fn the_comment_is_found_behind_many_others_and_a_copy_of_it_is_left_alone() {
    for (provider, kind) in FORGES {
        let desk = Desk::new(provider, kind, &[("one", A)]).await;
        let first = desk.saying("infra", A, Standing::Success, Some("2 to add\n"));
        desk.forge.edit(1, |pull| {
            pull.comments = vec!["chatter".to_owned(); 129];
            // As the address in the comment of another Repo may.
            pull.comments.push(format!("- create `a[\"{}\"]`", first.mark(1)));
        });
        assert_eq!(desk.reports.say(&first).await, Ok(1));
        let copied = format!("{}\n0 to destroy, says somebody else", first.mark(1));
        desk.forge.edit(1, |pull| pull.comments.push(copied.clone()));
        let next = desk.saying("infra", A, Standing::Success, Some("3 to add\n"));
        assert_eq!(desk.reports.say(&next).await, Ok(1));
        let comments = desk.comments(1);
        assert_eq!((comments.len(), comments[131].as_str()), (132, copied.as_str()), "{kind:?}");
        assert!(comments[130].contains("3 to add"), "{kind:?}: {}", comments[130]);
        assert_ne!(first.mark(1), first.mark(2), "the mark of one request says nothing of that of another");
    }
}

#[tokio::test]
async fn a_refusal_is_told_without_the_token_and_what_can_be_said_is() {
    for (provider, kind) in FORGES {
        let desk = Desk::new(provider, kind, &[("one", A)]).await;
        let refuse = |request: &Request| request.method == "POST" && request.path.contains("/statuses/");
        let words = format!(r#"{{"message": "Resource not accessible with {TOKEN}"}}"#);
        let reply = Reply::full(403, "application/json", words);
        desk.server.inject(Fault::once(When::Before, Action::Answer(reply)).matching(refuse));
        let saying = desk.saying("infra", A, Standing::Success, Some("2 to add\n"));
        let refused = desk.reports.say(&saying).await.expect_err("it has no right to that");
        assert!(refused.why.contains("failed to set the state of a commit in") && refused.why.contains("403"));
        assert!(refused.lasting && !refused.why.contains("hunter2"), "{kind:?}: {}", refused.why);
        assert_eq!((desk.comments(1).len(), desk.states().len()), (1, 0), "{kind:?}");
        assert_eq!(desk.reports.say(&saying).await, Ok(1), "{kind:?}: once it may");
        assert_eq!((desk.comments(1).len(), desk.states().len()), (1, 1), "{kind:?}");
    }
}

#[tokio::test]
async fn a_forge_that_asks_for_patience_is_left_alone_and_no_words_change_meanwhile() {
    let (provider, kind) = FORGES[0];
    let desk = Desk::new(provider, kind, &[("one", A)]).await;
    let reply = Reply::full(429, "application/json", "{}".to_owned()).header("retry-after", "120".to_owned());
    desk.server.inject(Fault::once(When::Before, Action::Answer(reply)));
    // All that follows rests, so only one request is sent.
    let saying = desk.saying("infra", A, Standing::Success, Some("2 to add\n"));
    let first = desk.reports.say(&saying).await.expect_err("patience");
    assert!(first.rest.as_secs() >= 120 && !first.lasting, "{first:?}");
    let sent = desk.server.seen().len();
    assert_eq!(sent, 1);
    let second = desk.reports.say(&saying).await.expect_err("it rests");
    assert_eq!((desk.server.seen().len(), desk.reports.say(&saying).await.err()), (sent, Some(second)));
}
