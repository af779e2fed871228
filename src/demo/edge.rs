//! The story of an edge that is looked at after each purge. CloudFront says "completed" each time; what visitors get is another matter.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::time::sleep;

use crate::demo::member::Member;
use crate::demo::narration::{DISTRIBUTION, HOST, LOOK_EVERY, NAME, NAMESPACE, Told, label, program, refused, say};
use crate::demo::story::{self, Came, Stopwatch};
use crate::demo::telling::{Heading, Pace, Wishes};
use sandbox::edge::EdgeStandIn;
use sandbox::http::Server;
use sandbox::kubernetes::Kind;
use sandbox::world::World;

/// No chapter takes longer. What is old counts half a minute after a purge, and is looked at twice then; the looks after the second purge
/// take a few seconds more.
const CHAPTER_MAX: Duration = Duration::from_secs(120);

/// A chapter.
#[derive(Clone, Copy)]
pub struct Scene {
    from: &'static str,
    to: &'static str,
    /// A slow answer of an old pod is stored after the purge.
    late: bool,
    /// Purges.
    expected: usize,
}

pub const SCENES: [(Heading, Scene); 2] = [
    (
        Heading::new("fresh", "the edge is looked at after a purge, 1.0 → 1.1"),
        Scene { from: "1.0", to: "1.1", late: false, expected: 1 },
    ),
    (
        Heading::new("yesterday", "a slow answer of an old pod is stored after the purge, 1.1 → 1.2"),
        Scene { from: "1.1", to: "1.2", late: true, expected: 2 },
    ),
];

/// Tells it. Whether it came out as announced.
pub async fn tell(wishes: &Wishes) -> io::Result<bool> {
    let pace = wishes.pace();
    let scenes = wishes.chosen(&SCENES);
    let from = scenes.first().map_or("1.0", |(_, _, first)| first.from);
    let world = World::new(pace.timings, Some(pace.completes_after)).await?;
    let edge = Arc::new(EdgeStandIn::new(world.cloudfront.clone(), DISTRIBUTION, from));
    let server = Server::start(edge.clone()).await?;
    let mut member = Member::new(world, from)?;
    mark(&member.world, from)?;
    say(&format!(
        "allclear demo: the real controller against stand-ins on this machine's loopback\n\
         \n  Kubernetes  {}   {NAMESPACE}/{NAME}, 3 replicas, with allclear.dev/proof-marker\
         \n  CloudFront  {}   {DISTRIBUTION}, alias {HOST}\
         \n  its edge    {}   what visitors of {HOST} reach",
        member.world.api.url(),
        member.world.cdn.url(),
        server.url(),
    ))?;
    let settings: Vec<_> = pace.settings().iter().copied().chain([("ALLCLEAR__PROOF__ENABLED", "true")]).collect();
    let stand_ins = BTreeMap::from([(HOST.to_owned(), server.address())]);
    member.controller.start(&member.world, &settings, stand_ins).await?;
    member.ready("the controller", 1).await?;
    let story = Story { pace, member, edge, _server: server, watch: Stopwatch::default() };
    story::tell(story, &scenes, wishes).await
}

/// Has the owner of the site say by which header a page of this version is known.
fn mark(world: &World, tag: &str) -> io::Result<()> {
    let annotations = json!({"allclear.dev/proof-marker": format!("header:X-Version={tag}")});
    let change = json!({"metadata": {"annotations": annotations}});
    world.kubernetes.patch(Kind::Deployment, NAMESPACE, NAME, &change).map(drop).map_err(refused)
}

struct Story {
    pace: &'static Pace,
    member: Member,
    edge: Arc<EdgeStandIn>,
    _server: Server,
    watch: Stopwatch,
}

impl story::Story for Story {
    type Scene = Scene;

    const COLUMNS: &'static [&'static str] = &["purges"];

    fn watch(&mut self) -> &mut Stopwatch {
        &mut self.watch
    }

    /// Rolls out, and tells what follows until the edge is known to be fresh.
    async fn chapter(&mut self, Scene { from, to, late, expected }: Scene) -> io::Result<Came> {
        self.member.begin();
        self.member.world.kubernetes.set_timings(self.pace.timings);
        let purges = self.member.purges();
        if late {
            self.edge.delay(from);
        }
        mark(&self.member.world, to)?;
        self.watch.line("deployment", &self.member.set_image(to)?)?;
        self.edge.serve(to);
        let mut proved = false;
        while !proved && self.watch.elapsed() < CHAPTER_MAX {
            for Told { reason, note, .. } in self.member.news() {
                self.watch.line(label(&reason), &note)?;
                proved |= reason == "EdgeFresh";
            }
            self.tell_look().await?;
            sleep(LOOK_EVERY).await;
        }
        Ok(Came::counts(expected, &[self.member.purges() - purges], proved))
    }

    fn closing(&self) -> Option<String> {
        Some(format!(
            "\nThe edge was asked {} times. CloudFront said \"completed\" after each purge.",
            self.edge.asked()
        ))
    }

    fn staying(&self) -> io::Result<String> {
        Ok(format!(
            "\nStill running; end it with Ctrl-C. In another shell:\n\
             \n  status page   {}\
             \n  settings      . {}\
             \n  ask why       {} explain -n {NAMESPACE} {NAME}",
            self.member.controller.page(),
            self.member.world.leave_settings()?.display(),
            program(),
        ))
    }

    fn end(self) -> io::Result<()> {
        self.member.controller.stop()
    }
}

impl Story {
    /// Tells what is being looked for, and what that has shown so far, whenever that changes.
    async fn tell_look(&mut self) -> io::Result<()> {
        let shown = self.member.controller.observe().await;
        let Some(rollout) = shown.rollouts.first() else { return Ok(()) };
        let Some((_, looking)) = rollout.state.split_once("; looking at ") else { return Ok(()) };
        let state = format!("{looking}; {}", rollout.next);
        if state == self.member.state {
            return Ok(());
        }
        self.watch.line("looking at", &state)?;
        self.member.state = state;
        Ok(())
    }
}
