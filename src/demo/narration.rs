//! What the stories have in common: the world they play in, and how they are told.
#![allow(clippy::indexing_slicing, reason = "reading a JSON value by index never panics")]

use std::io::{self, Write};
use std::time::Duration;

use tokio::time::Instant;

use sandbox::kubernetes::{Kind, Timings};
use sandbox::world::World;

pub const NAMESPACE: &str = "shop";
pub const NAME: &str = "web";
pub const HOST: &str = "www.example.com";
pub const DISTRIBUTION: &str = "E2DEMO";
const IMAGE: &str = "registry.example.com/shop/web";

/// The tag whose image does not exist.
pub const BROKEN: &str = "2.0";

/// A cluster a person can follow, and still be done in half a minute.
pub const TIMINGS: Timings = Timings {
    pod_ready: Duration::from_millis(450),
    pod_gone: Duration::from_millis(200),
    image_back_off: Duration::from_millis(600),
};

/// How long CloudFront takes here; the real one needs about ten seconds.
pub const COMPLETES_AFTER: Duration = Duration::from_millis(900);

/// How long a rollout may take here, so that the failing one does not delay the demo.
pub const ROLLOUT_TIMEOUT: &str = "4s";

/// How often the world is looked at.
pub const LOOK_EVERY: Duration = Duration::from_millis(20);

/// No chapter takes longer; one that does has failed.
pub const CHAPTER_MAX: Duration = Duration::from_secs(20);

/// What a chapter announced and what came of it.
pub struct Chapter {
    pub title: &'static str,
    /// Purges, and webhook calls, that were announced.
    pub expected: usize,
    pub purged: usize,
    pub called: usize,
    /// Whether it came to its end, rather than being given up.
    pub ended: bool,
    pub took: Duration,
}

/// One Event on the workload.
pub struct Told {
    pub id: String,
    pub reason: String,
    pub note: String,
}

/// The image of [`NAME`] with this tag.
pub fn image(tag: &str) -> String {
    format!("{IMAGE}:{tag}")
}

/// Prints a text and a line break.
pub fn say(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{text}")?;
    out.flush()
}

/// Prints what happened, with the time since the chapter began.
pub fn line(began: Instant, what: &str, text: &str) -> io::Result<()> {
    let seconds = began.elapsed().as_secs_f64();
    say(&format!("  {seconds:5.2} s  {what:<21} {text}"))
}

/// How this program was called.
pub fn program() -> String {
    std::env::args().next().unwrap_or_else(|| "allclear".to_owned())
}

/// What a line is about, by the Event's reason.
pub fn label(reason: &str) -> &str {
    match reason {
        "RolloutStarted" => "change seen",
        "RolloutCompleted" => "rollout complete",
        "RolloutSuperseded" => "rollout superseded",
        "RolloutFailed" => "rollout failed",
        "PurgeStarted" => "invalidation created",
        "PurgeCompleted" => "invalidation done",
        "PurgeSkipped" => "not purged",
        other => other,
    }
}

/// Whether the Deployment is complete.
pub fn settled(world: &World) -> bool {
    let deployment = world.kubernetes.get(Kind::Deployment, NAMESPACE, NAME);
    deployment.is_some_and(|object| object["status"]["availableReplicas"] == 3)
}

/// The Events on the workload, oldest first.
pub fn events(world: &World) -> Vec<Told> {
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let mut events = world.kubernetes.list(Kind::Event, NAMESPACE);
    let version = |event: &serde_json::Value| text(&event["metadata"]["resourceVersion"]).parse::<u64>();
    events.sort_by_key(|event| version(event).unwrap_or_default());
    let told = |event: &serde_json::Value| Told {
        id: text(&event["metadata"]["name"]),
        reason: text(&event["reason"]),
        note: text(&event["note"]),
    };
    events.iter().map(told).collect()
}

/// Prints what the chapters announced beside what happened; whether all `announced` are there and agree.
pub fn table(chapters: &[Chapter], announced: usize) -> io::Result<bool> {
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    table.set_header(["", "chapter", "purges", "webhooks", "time", ""]);
    let mut well = chapters.len() == announced;
    for (number, chapter) in chapters.iter().enumerate() {
        let Chapter { title, expected, purged, called, ended, took } = chapter;
        let right = *ended && purged == expected && called == expected;
        well &= right;
        table.add_row([
            format!("{}", number + 1),
            (*title).to_owned(),
            format!("{purged} of {expected}"),
            format!("{called} of {expected}"),
            format!("{:.1} s", took.as_secs_f64()),
            if right { "as announced".to_owned() } else { "NOT AS ANNOUNCED".to_owned() },
        ]);
    }
    say(&format!("\n{table}"))?;
    Ok(well)
}
