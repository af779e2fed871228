//! Green means green: a rollout that ended badly is shown by the page, by `status` and by a metric until a later one ends well,
//! also by the next life. The real controller in a small world.

use std::time::Duration;

use allclear::adapters::kubernetes::{Cluster, Options, Scope, Tempo, connect};
use allclear::adapters::ledger::kubernetes::KubernetesLedger;
use allclear::cli::answer::Output;
use allclear::cli::status::{Asked, printed, status};
use allclear::demo::life::Life;
use allclear::looking::whose::Whose;
use allclear::looking::{About, Sources};
use purge::bounds::policy::Policy;
use purge::purges::accounts::Accounts;
use sandbox::kubernetes::{PodFate, Timings};
use sandbox::world::World;
use std::sync::Arc;
use tokio::time::Instant;

use crate::cloudfront::adapter;

/// Long enough for a busy machine; nothing here needs more than three seconds.
const PATIENCE: Duration = Duration::from_secs(45);

const TIMEOUT: (&str, &str) = ("ALLCLEAR__ROLLOUT__TIMEOUT", "1s");

async fn get(life: &Life, path: &str) -> String {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    client.get(format!("http://{}{path}", life.address())).send().await.unwrap().text().await.unwrap()
}

/// Waits until the page has these words.
async fn comes_to_say(life: &Life, words: &str) -> String {
    let began = Instant::now();
    loop {
        let page = get(life, "/").await;
        if page.contains(words) {
            return page;
        }
        assert!(began.elapsed() < PATIENCE, "the page never said {words}: {page}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// What `status` says, asked of the process and recomputed from the cluster.
async fn statuses(world: &World, life: &Life) -> [String; 2] {
    let url: url::Url = format!("http://{}/", life.address()).parse().unwrap();
    let asked = status(&Asked::Server(&url, None), Output::Table).await.out;
    let options = Options { kubeconfig: Some(world.kubeconfig()), ..Options::default() };
    let clients = connect(&options).await.unwrap();
    let sources = Sources {
        cluster: Arc::new(Cluster::new(&clients, Scope::All, Tempo::default())),
        ledger: Arc::new(KubernetesLedger::new(clients.request.clone(), "default")),
        cdn: Arc::new(adapter("http://127.0.0.1:9", "AKIDONE", Default::default()).await),
        accounts: Accounts::default(),
        group: None,
        installation: None,
        desk: None,
        repos: None,
        own_namespace: "shop".to_owned(),
        ledger_place: "namespace default".to_owned(),
        us: About { member: "self".to_owned(), group: "default".to_owned(), dry_run: false },
        policy: Policy::default(),
        whose: Whose::Itself,
    };
    let recomputed = status(&Asked::Sources(&sources, None), Output::Table).await.out;
    [asked, recomputed]
}

#[tokio::test]
async fn a_rollout_that_failed_is_amber_everywhere_until_one_ends_well_also_after_a_restart() {
    let world = World::new(Timings::IMMEDIATE, Some(Duration::from_millis(50))).await.unwrap();
    let image = |tag: &str| format!("registry.example.com/shop/web:{tag}");
    world.add_site("shop", "web", &image("1"), "www.example.com", "E1").unwrap();
    world.add_site("shop", "docs", &image("1"), "docs.example.com", "E2").unwrap();
    world.kubernetes.set_fate(&image("2"), Some(PodFate::CannotPull));
    world.kubernetes.settle();
    let cluster = world.kubernetes.clone();
    let controllers = tokio::spawn(async move { cluster.run_controller().await });
    let life = Life::start(&world, &[TIMEOUT]).await.unwrap();
    comes_to_say(&life, "All clear").await;
    for text in statuses(&world, &life).await {
        assert_eq!(text.trim_end(), "member self of group default: all clear, 2 workloads and none in flight");
    }
    let said: serde_json::Value = serde_json::from_str(&get(&life, "/api/v1/state").await).unwrap();
    for (of, list) in [("promoting", "pipelines"), ("running", "repos")] {
        let mut newer = said.clone();
        newer[of] = serde_json::json!({list: [{"id": "of a newer allclear"}]});
        let text = printed(newer.to_string().as_bytes(), None, Output::Table).unwrap().out;
        assert!(text.contains("of another form") && !text.contains("all clear"), "{text}");
    }

    world.kubernetes.set_image("shop", "web", "web", &image("2")).unwrap();
    let amber = "shop/web did not roll out";
    let page = comes_to_say(&life, amber).await;
    assert!(page.contains("What to do: ") && !page.contains("All clear"), "{page}");
    life.stop().unwrap();
    let life = Life::start(&world, &[TIMEOUT]).await.unwrap();
    comes_to_say(&life, amber).await;
    // The life before may have ended before it had closed the rollout.
    let (rests, began) =
        ("member self of group default: 2 workloads and none in flight, but something", Instant::now());
    let at_rest = loop {
        let texts = statuses(&world, &life).await;
        if texts.iter().all(|text| text.starts_with(rests)) {
            break texts;
        }
        assert!(began.elapsed() < PATIENCE, "{texts:?}");
    };
    for text in at_rest {
        assert!(
            text.contains("Needs a look  shop/web: web: 1 → 2: not purged") && !text.contains("shop/docs"),
            "{text}"
        );
    }
    // Counted within a second.
    let began = Instant::now();
    while !get(&life, "/metrics").await.contains("allclear_workloads_unwell{reason=\"failed\"} 1") {
        assert!(began.elapsed() < PATIENCE, "{}", get(&life, "/metrics").await);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }

    world.kubernetes.set_image("shop", "web", "web", &image("3")).unwrap();
    comes_to_say(&life, "All clear").await;
    life.stop().unwrap();
    controllers.abort();
}
