//! `allclear check` through the real adapters: an installation in which everything holds, of which each test breaks one thing and
//! sees that one named, and nothing else.

mod aws;
mod cacheability;
mod cluster;
mod documents;
mod group;
mod installation;
mod redis;
mod rights;
mod sites;
mod traces;
mod webhooks;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use allclear::adapters::clock::SystemClock;
use allclear::adapters::cloudfront::StaticCredentials;
use allclear::adapters::kubernetes::{KubernetesLease, Options as Kubernetes, connect};
use allclear::adapters::ledger::kubernetes::KubernetesLedger;
use allclear::adapters::redis::Server as RedisServer;
use allclear::adapters::redis::board::RedisBoard;
use allclear::app::checking::{Outside, outside};
use allclear::cli::check::{Mark, Options, Report, once};
use allclear::config::{Inputs, Loaded, Secret, load};
use allclear::looking::whose::Whose;
use kernel::id::{Member, config_hash};
use kernel::replica::lease::Replica;
use purge::agreement::roster::{Heartbeat, Pin, settings};
use purge::ports::{Board, Clock, Lease, Ledger};
use sandbox::cloudfront::{CloudFrontStandIn, Distribution, Options as CloudFrontOptions};
use sandbox::http::Server;
use sandbox::kubernetes::{Forbidden, KubernetesStandIn, Options as KubernetesOptions};
use sandbox::receiver::Receiver;
use serde_json::json;
use support::redis::Redis;

/// The controller, as the API server knows it.
const CONTROLLER: &str = "system:serviceaccount:allclear:allclear";

/// An installation of eu-1, whose group has eu-2 as well.
struct World {
    api: KubernetesStandIn,
    api_server: Server,
    kubeconfig: tempfile::NamedTempFile,
    cloudfront: Arc<CloudFrontStandIn>,
    cdn: Server,
    receiver: Server,
    redis: [Redis; 2],
    /// Sections of the configuration, to be changed.
    sections: BTreeMap<&'static str, String>,
    hooks: serde_json::Value,
    options: Options,
    /// The report is made in the pod.
    in_pod: bool,
}

fn members() -> BTreeSet<Member> {
    ["eu-1", "eu-2"].map(Member::from).into()
}

impl World {
    async fn start() -> Self {
        let world = Self::bare().await;
        world.install("eu-1").await;
        world
    }

    /// The same before anything ran.
    async fn bare() -> Self {
        let api = KubernetesStandIn::new(KubernetesOptions::default());
        for namespace in ["shop", "allclear"] {
            api.apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})).unwrap();
        }
        api.seed("shop", "web", "shop/web:2", 2).unwrap();
        api.expose("shop", "web", "shop.example.com").unwrap();
        let api_server = api.start().await.unwrap();
        let kubeconfig = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(kubeconfig.path(), api.kubeconfig(&api_server)).unwrap();
        let cloudfront = Arc::new(CloudFrontStandIn::new(CloudFrontOptions::default()));
        cloudfront.add_distribution(Distribution::new("EWEB").alias("shop.example.com"));
        let cdn = Server::start(cloudfront.clone()).await.unwrap();
        let receiver = Server::start(Arc::new(Receiver::new())).await.unwrap();
        let redis = [Redis::start(), Redis::start()];
        let sections = BTreeMap::from([
            ("watch", "namespaces = [\"*\"]".to_owned()),
            ("cloudfront", format!("endpoint = \"{}\"", cdn.url())),
            ("redis", format!("url = \"{}\"", redis[0].url())),
            (
                "group",
                format!(
                    "member = \"eu-1\"\nmembers = [\"eu-1\", \"eu-2\"]\nunsigned = true\nremotes = [\"{}\"]",
                    redis[1].url()
                ),
            ),
            ("ledger", "namespace = \"allclear\"".to_owned()),
            ("proof", "enabled = true".to_owned()),
            ("webhooks", "file = \"hooks.json\"\nallow_private = true".to_owned()),
        ]);
        let hooks = json!([{"name": "web", "url": format!("{}/secret-path", receiver.url()), "method": "POST"}]);
        Self {
            api,
            api_server,
            kubeconfig,
            cloudfront,
            cdn,
            receiver,
            redis,
            sections,
            hooks,
            options: Options::default(),
            in_pod: false,
        }
    }

    /// What two running members leave, ours of this name.
    async fn install(&self, own: &str) {
        let clients = connect(&self.kubernetes()).await.unwrap();
        let ledger = KubernetesLedger::new(clients.request.clone(), "allclear");
        let origin = ledger.open().await.unwrap().origin;
        let members = [own, "eu-2"].map(Member::from).into();
        let pin = Pin { members, of: 2, ..Pin::default() };
        assert!(ledger.store_pin(&pin, None).await.unwrap());
        let us = Replica { pod: "allclear-1".to_owned(), boot: "x".to_owned() };
        let lease = KubernetesLease::new(clients.request, "allclear", us, Arc::new(SystemClock::default()));
        lease.take(None).await.unwrap().unwrap();
        self.beat(own, |beat| beat.origin = origin.clone()).await;
        self.beat("eu-2", |_| {}).await;
    }

    /// A member reports on both servers.
    async fn beat(&self, member: &str, change: impl FnOnce(&mut Heartbeat)) {
        self.signed_beat(member, None, change).await;
    }

    /// The same, signed with this key.
    async fn signed_beat(&self, member: &str, key: Option<&str>, change: impl FnOnce(&mut Heartbeat)) {
        let config = self.loaded().config;
        let members: BTreeSet<Member> = config.group.members.iter().map(|name| Member::from(name.as_str())).collect();
        let is_keyed = !config.group.keys.is_empty();
        let mut agreed = settings(&config.policy(), is_keyed);
        agreed.insert("group.members".to_owned(), purge::agreement::roster::listed(&members));
        let mut beat = Heartbeat {
            member: member.into(),
            origin: "o-2".into(),
            boot: "x".to_owned(),
            count: 1,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            members,
            settings: agreed,
            at_ms: SystemClock::default().wall_ms(),
            ..Heartbeat::default()
        };
        change(&mut beat);
        beat.config = config_hash(beat.settings.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        for redis in &self.redis {
            let server = RedisServer::new(&redis.url()).unwrap();
            let key = key.map(|key| Secret::new(key.as_bytes().to_vec()));
            RedisBoard::new(server, "default", &beat.member, key).beat(&beat).await.unwrap();
        }
    }

    fn kubernetes(&self) -> Kubernetes {
        Kubernetes { kubeconfig: Some(self.kubeconfig.path().to_owned()), ..Kubernetes::default() }
    }

    fn loaded(&self) -> Loaded {
        let text: String = self.sections.iter().map(|(name, keys)| format!("[{name}]\n{keys}\n")).collect();
        let hooks = json!({"webhooks": self.hooks}).to_string();
        let read = |path: &Path| match path.to_str() {
            Some("config.toml") => Ok(text.clone()),
            Some("hooks.json") => Ok(hooks.clone()),
            _ => std::fs::read_to_string(path),
        };
        let inputs = Inputs {
            file: Some("config.toml".into()),
            environment: BTreeMap::new(),
            flags: BTreeMap::new(),
            service_account_namespace: None,
            read: &read,
        };
        load(&inputs).unwrap()
    }

    async fn outside(&self, loaded: &Loaded) -> Outside {
        let aws = StaticCredentials { access_key_id: "AKIDONE".to_owned(), secret_access_key: "key-of-aws".to_owned() };
        let mut outside = outside(&loaded.config, &self.kubernetes(), Some(aws)).await;
        if let Ok(cluster) = outside.cluster.as_mut().map_err(|_| ())
            && self.in_pod
        {
            cluster.clients.pod_namespace = Some("allclear".to_owned());
        }
        outside
    }

    async fn report(&self) -> Report {
        let loaded = self.loaded();
        once(&loaded, &Whose::Itself, self.outside(&loaded).await, &self.options).await
    }

    /// Takes a right from the controller.
    fn forbid(&self, verb: &str, group: &str, resource: &str) {
        let right = Forbidden::everywhere(verb, group, resource);
        self.api.forbid(Forbidden { user: Some(CONTROLLER.to_owned()), ..right });
    }

    /// Takes a right from the person who asks.
    fn forbid_caller(&self, verb: &str, group: &str, resource: &str) {
        let right = Forbidden::everywhere(verb, group, resource);
        self.api.forbid(Forbidden { user: Some(self.api.user().to_owned()), ..right });
    }

    /// Everything holds but this check, which says these words.
    async fn fails(&self, check: &str, words: &str) -> Report {
        let report = self.report().await;
        assert_eq!(marked(&report, Mark::Failed), [check], "{report}");
        said(&report, check, words);
        report
    }

    /// Nothing fails, and this check alone says what should be known.
    async fn warns(&self, check: &str, words: &str) -> Report {
        let report = self.report().await;
        assert_eq!(marked(&report, Mark::Failed), [""; 0], "{report}");
        assert_eq!(marked(&report, Mark::Warning), [check], "{report}");
        said(&report, check, words);
        report
    }
}

/// The checks that came to this, each once.
fn marked(report: &Report, mark: Mark) -> Vec<&str> {
    let mut ids: Vec<&str> =
        report.findings.iter().filter(|found| found.mark == mark).map(|found| found.check.id).collect();
    ids.dedup();
    ids
}

fn said(report: &Report, check: &str, words: &str) {
    let lines: Vec<String> = report
        .findings
        .iter()
        .filter(|found| found.check.id == check)
        .map(|found| {
            format!(
                "{} {} {}",
                found.about.clone().unwrap_or_default(),
                found.reason,
                found.hint.clone().unwrap_or_default()
            )
        })
        .collect();
    assert!(lines.iter().any(|line| line.contains(words)), "{words:?} is not in {lines:#?}");
}

#[tokio::test]
async fn where_everything_holds_every_line_is_good_and_nothing_is_changed() {
    let world = World::start().await;
    let version = world.api.version();
    let report = world.report().await;
    println!("{report}");
    assert_eq!((report.failed, report.warnings, report.not_tried), (0, 0, 0), "{report}");
    assert!(report.good >= 35, "{report}");
    assert_eq!(world.api.version(), version, "something was written");
    assert!(world.cloudfront.invalidations().is_empty(), "something was purged");
    for redis in &world.redis {
        let keys: Vec<String> = redis.command(&["KEYS", "*check*"]);
        assert_eq!(keys, [""; 0], "something was left");
    }
    assert_eq!(report.rights_of, "the service account allclear of namespace allclear");
    assert!(!report.to_string().contains("secret-path"), "{report}");
}

#[tokio::test]
async fn in_the_pod_the_same_holds_by_its_own_rights() {
    let mut world = World::start().await;
    world.in_pod = true;
    let report = world.report().await;
    assert_eq!((report.failed, report.warnings, report.not_tried), (0, 0, 0), "{report}");
    assert!(report.aws_asked.contains("of this pod"), "{report}");
    world.forbid_caller("list", "", "services");
    let report = world.report().await;
    assert!(marked(&report, Mark::Failed).contains(&"right-services"), "{report}");
}

#[tokio::test]
async fn the_answer_for_programs_has_the_shape_that_is_documented() {
    let mut world = World::start().await;
    world.sections.insert("leader", "lease = false".to_owned());
    world.forbid("watch", "", "pods");
    let report = serde_json::to_value(world.report().await).unwrap();
    let keys: Vec<&String> = report.as_object().unwrap().keys().collect();
    let expected = ["pre", "asked", "rights_of", "aws_asked", "good", "warnings", "failed", "not_tried", "findings"];
    assert_eq!(BTreeSet::from_iter(keys.into_iter().map(String::as_str)), BTreeSet::from(expected));
    let pods = report["findings"].as_array().unwrap().iter().find(|found| found["check"] == "right-pods").unwrap();
    assert_eq!(
        *pods,
        json!({
            "check": "right-pods", "group": "rights", "about": "in all namespaces", "result": "failed",
            "reason": "the service account allclear of namespace allclear may not watch pods",
            "hint": "apply deploy/base/cluster-role.yaml; where one namespace is watched, kubectl apply -k deploy/overlays/namespaced",
            "docs": "docs/check.md#right-pods",
        })
    );
}
