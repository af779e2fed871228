//! A site that Argo Rollouts delivers, as a canary that a person lets go on, and what that person does.

use std::io;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::demo::narration::{CHAPTER_MAX, LOOK_EVERY, NAMESPACE, image, refused};
use sandbox::cloudfront::Distribution;
use sandbox::kubernetes::Kind;
use sandbox::world::World;

pub const NAME: &str = "news";
pub const HOST: &str = "news.example.com";
const DISTRIBUTION: &str = "E2NEWS";

/// Part of what is said of a canary that waits for a person.
const PAUSE: &str = "a pause until it is promoted";

/// What a person does next with a canary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    Aborts,
    TriesAgain,
    Promotes,
}

impl Turn {
    /// Whether the time for it has come, by what the controller says and whether it has purged and has nothing left to do.
    pub fn is_due(self, state: &str, rests: bool) -> bool {
        match self {
            Self::Aborts | Self::Promotes => state.contains(PAUSE),
            Self::TriesAgain => rests,
        }
    }

    /// Does it. Returns the command that does the same.
    pub fn play(self, world: &World) -> io::Result<String> {
        let (word, status) = match self {
            Self::Aborts => ("abort", json!({"abort": true})),
            Self::TriesAgain => ("retry rollout", json!({"abort": false})),
            Self::Promotes => ("promote", json!({"pauseConditions": null})),
        };
        change(world, &json!({"status": status}))?;
        Ok(format!("kubectl argo rollouts {word} {NAME}"))
    }

    pub const fn next(self) -> Option<Self> {
        match self {
            Self::Aborts => Some(Self::TriesAgain),
            Self::TriesAgain => Some(Self::Promotes),
            Self::Promotes => None,
        }
    }
}

/// Adds the site in this version, and waits until it runs.
pub async fn add(world: &World, tag: &str) -> io::Result<()> {
    world.kubernetes.set_installed("argoproj.io", true);
    world.kubernetes.expose(NAMESPACE, NAME, HOST).map_err(refused)?;
    world.cloudfront.add_distribution(Distribution::new(DISTRIBUTION).alias(HOST));
    let steps = json!([{"setWeight": 50}, {"pause": {}}]);
    let rollout = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "metadata": {"namespace": NAMESPACE, "name": NAME},
        "spec": {
            "replicas": 2, "strategy": {"canary": {"steps": steps}}, "selector": {"matchLabels": {"app": NAME}},
            "template": {"metadata": {"labels": {"app": NAME}}, "spec": {"containers": [container(tag)]}},
        },
    });
    world.kubernetes.apply(rollout).map_err(refused)?;
    let deadline = Instant::now() + CHAPTER_MAX;
    while !is_healthy(world) {
        if Instant::now() > deadline {
            return Err(io::Error::other(format!("the pods of {NAME} were not ready")));
        }
        sleep(LOOK_EVERY).await;
    }
    Ok(())
}

/// Sets a tag. Returns the command that does the same.
pub fn set_image(world: &World, tag: &str) -> io::Result<String> {
    change(world, &json!({"spec": {"template": {"spec": {"containers": [container(tag)]}}}}))?;
    Ok(format!("kubectl argo rollouts set image {NAME} {NAME}={}", image(tag)))
}

fn change(world: &World, change: &Value) -> io::Result<()> {
    world.kubernetes.patch(Kind::ArgoRollout, NAMESPACE, NAME, change).map(drop).map_err(refused)
}

fn container(tag: &str) -> Value {
    json!({"name": NAME, "image": image(tag)})
}

fn is_healthy(world: &World) -> bool {
    let rollout = world.kubernetes.get(Kind::ArgoRollout, NAMESPACE, NAME);
    rollout.is_some_and(|rollout| rollout.pointer("/status/phase").and_then(Value::as_str) == Some("Healthy"))
}
