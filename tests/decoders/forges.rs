//! What the APIs of five forges answer about requests, and the keys of a Secret by which they are asked.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use allclear::adapters::clock::SystemClock;
use async_trait::async_trait;
use bytes::Bytes;
use forge::keeper::Keeper;
use forge::keys::GitKeys;
use forge::propose::Forges;
use forge::{Authorities, Http, HttpError};
use http::{Request, Response, StatusCode};
use kernel::id::{Environment, PipelineId, PromotionSeq, Revision};
use kernel::names::destination::Purpose;
use objects::pipeline::options::{Lacks, RequestOptions};
use objects::pipeline::proposal::{ForgeKind, Order, Repository, RequestState};
use objects::ports::Secrets;
use objects::ports::pipeline::Forge;
use purge::ports::PortError;

use crate::{Target, api, target};

pub const TARGETS: &[Target] = &[
    target("github", |bytes| forge(ForgeKind::GitHub, bytes)),
    target("gitlab", |bytes| forge(ForgeKind::GitLab, bytes)),
    target("bitbucket_server", |bytes| forge(ForgeKind::BitbucketServer, bytes)),
    target("bitbucket_cloud", |bytes| forge(ForgeKind::BitbucketCloud, bytes)),
    target("gitea", |bytes| forge(ForgeKind::Gitea, bytes)),
    target("git_keys", git_keys),
];

/// What no error may say.
const TOKEN: &str = "Wd7PuQzs1";

/// Requests of one look at most: the list of a forge has pages.
const ASKED_MAX: usize = 64;

/// A forge that answers so to everything, but for the first `missing` requests.
struct Answering {
    answer: Bytes,
    missing: usize,
    asked: AtomicUsize,
}

#[async_trait]
impl Http for Answering {
    async fn send(&self, _: Request<Bytes>, _: Option<&Authorities>, _: usize) -> Result<Response<Bytes>, HttpError> {
        let asked = self.asked.fetch_add(1, Ordering::Relaxed);
        assert!(asked < ASKED_MAX, "it asks again and again");
        let status = if asked < self.missing { StatusCode::NOT_FOUND } else { StatusCode::OK };
        let answer = Response::builder().status(status).header("content-type", "application/json");
        Ok(answer.body(self.answer.clone()).unwrap())
    }
}

struct Keys;

#[async_trait]
impl Secrets for Keys {
    async fn read(&self, _: &str, _: &str, _: Purpose) -> Result<BTreeMap<String, Vec<u8>>, PortError> {
        let keys = [("username", "ann"), ("password", TOKEN), ("token", TOKEN)];
        Ok(keys.into_iter().map(|(key, value)| (key.to_owned(), value.as_bytes().to_vec())).collect())
    }
}

fn order(kind: ForgeKind) -> Order {
    let path = if kind == ForgeKind::BitbucketServer { "scm/shop" } else { "shop" };
    let host = if kind == ForgeKind::BitbucketCloud { "bitbucket.org" } else { "git.example.com" };
    Order {
        id: "0123456789abcdef0123456789abcdef".to_owned(),
        pipeline: PipelineId::new("shop", "web"),
        environment: Environment("prod".to_owned()),
        seq: PromotionSeq(3),
        from: None,
        revision: Revision("1.3".to_owned()),
        repository: Repository {
            forge: kind,
            url: format!("https://{host}/{path}/web.git"),
            base: "main".to_owned(),
            path: None,
            secret: Some("keys".to_owned()),
        },
        started_at: 1_795_309_611,
        approved_by: None,
        chosen: None,
        apps: Vec::new(),
        options: RequestOptions::default(),
        lacks: Lacks::new(),
        overwrite: false,
    }
}

/// A look at one request, and, where there is none, at the list of them.
fn forge(kind: ForgeKind, bytes: &[u8]) -> bool {
    let mut is_read = false;
    for missing in [0, 1] {
        let look = || {
            let answer = Answering { answer: Bytes::copy_from_slice(bytes), missing, asked: AtomicUsize::new(0) };
            let forges = Forges::new(Arc::new(answer), Arc::new(Keys), Keeper::new(Arc::new(SystemClock::default())));
            api::run(async { forges.look(&order(kind), 7).await }).map_err(|error| error.to_string())
        };
        let (one, other) = (look(), look());
        assert_eq!(one, other);
        match one {
            Ok(state) => {
                assert!(missing == 0 || state == RequestState::Closed, "{state:?}");
                is_read = true;
            }
            Err(words) => assert!(!words.contains(TOKEN) && words.len() <= 8 * 1_024, "{} bytes", words.len()),
        }
    }
    is_read
}

/// `name=value` with an empty line between: what a Secret holds for git.
fn git_keys(bytes: &[u8]) -> bool {
    let text = crate::text(bytes);
    let pairs = text.split("\n\n").filter_map(|pair| pair.split_once('='));
    let secret: BTreeMap<String, Vec<u8>> =
        pairs.map(|(key, value)| (key.to_owned(), value.as_bytes().to_vec())).collect();
    let read = |url: &str| match GitKeys::of(&secret, url) {
        Ok(keys) => {
            let held = [keys.credentials.is_some(), keys.app.is_some(), keys.authorities.is_some(), keys.ssh.is_some()];
            assert!(held.contains(&true));
            true
        }
        Err(why) => {
            let why = why.to_string();
            assert!(why.len() <= 1_024);
            for value in secret.values().filter(|value| value.len() >= 12) {
                assert!(!why.contains(crate::text(value).as_ref()), "{why}");
            }
            false
        }
    };
    let (https, ssh) = (read("https://git.example.com/shop/web.git"), read("ssh://git@git.example.com/shop/web.git"));
    https || ssh
}
