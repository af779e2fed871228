//! Several replicas of one member: one works, the others stand by, and whatever becomes of the lease, one purge comes out.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use actix::Actor;
use allclear::actors::Env;
use allclear::actors::message::Drain;
use allclear::actors::observation::Observation;
use allclear::actors::root::{ENDS_WITHIN, Root};
use allclear::telemetry::Metrics;
use async_trait::async_trait;
use kernel::replica::lease::{Claim, Replica};
use purge::ports::{Lease, PortError};
use support::fakes::{Fault, Millis, World};
use support::stage::{Life, in_system, roll_out, settings, settled, unexpected_panics};
use tokio::sync::oneshot;

/// What the API server makes of the lease.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Mood {
    #[default]
    Well,
    /// Nobody may touch it.
    Denied,
    /// It does not answer.
    Silent,
    /// Each answer takes this many milliseconds, and what was asked for is done just before.
    Slow(Millis),
}

/// The object, shared by all replicas.
#[derive(Clone, Default)]
struct Object(Arc<Mutex<(Option<Claim>, Mood, u64)>>);

/// One replica's way to it.
struct Seat {
    object: Object,
    us: Replica,
}

impl Object {
    fn holder(&self) -> String {
        self.0.lock().unwrap().0.as_ref().map(|claim| claim.holder.clone()).unwrap_or_default()
    }

    fn becomes(&self, mood: Mood) {
        self.0.lock().unwrap().1 = mood;
    }

    /// Somebody else's name appears in it.
    fn is_taken_by(&self, holder: &str) {
        let mut object = self.0.lock().unwrap();
        object.2 += 1;
        let version = object.2.to_string();
        object.0 = Some(Claim { holder: holder.to_owned(), renewed: version.clone(), version, ..Claim::default() });
    }

    async fn reach(&self) -> Result<(), PortError> {
        let mood = self.0.lock().unwrap().1;
        match mood {
            Mood::Well => Ok(()),
            Mood::Denied => Err(PortError::lasting("failed to get the lease", "forbidden")),
            Mood::Silent => {
                tokio::time::sleep(Duration::from_secs(5)).await;
                Err(PortError::passing("failed to get the lease", "no answer"))
            }
            Mood::Slow(millis) => {
                pass(millis).await;
                Ok(())
            }
        }
    }

    async fn write(&self, holder: &str, over: Option<&Claim>) -> Result<Option<Claim>, PortError> {
        self.reach().await?;
        if self.0.lock().unwrap().0.as_ref() != over {
            return Ok(None);
        }
        self.is_taken_by(holder);
        Ok(self.0.lock().unwrap().0.clone())
    }
}

#[async_trait]
impl Lease for Seat {
    fn replica(&self) -> &Replica {
        &self.us
    }

    async fn look(&self) -> Result<Option<Claim>, PortError> {
        self.object.reach().await?;
        Ok(self.object.0.lock().unwrap().0.clone())
    }

    async fn take(&self, over: Option<&Claim>) -> Result<Option<Claim>, PortError> {
        self.object.write(&self.us.to_string(), over).await
    }

    async fn release(&self, over: Option<&Claim>) -> Result<(), PortError> {
        self.object.write("", over).await.map(drop)
    }
}

/// Starts one replica in the world everybody shares.
fn start(world: &World, object: &Object, pod: &str) -> Life {
    let us = Replica { pod: pod.to_owned(), boot: "1".to_owned() };
    let mut ports = world.ports();
    ports.lease = Some(Arc::new(Seat { object: object.clone(), us }));
    let env = Env {
        ports,
        metrics: Arc::new(Metrics::default()),
        settings: Arc::new(settings()),
        complaints: Arc::default(),
    };
    let (give_up, given_up) = oneshot::channel();
    Life { world: world.clone(), root: Root::new(env, give_up).start(), given_up }
}

async fn pass(millis: Millis) {
    tokio::time::sleep(Duration::from_millis(millis)).await;
}

/// Two replicas, `a` a moment before `b`, in a world with one workload.
fn play(scene: impl AsyncFnOnce(World, Object, Life, Life)) {
    in_system(async {
        let (world, object) = (settled(1, &["web"]), Object::default());
        world.life_begins();
        let a = start(&world, &object, "a");
        pass(100).await;
        let b = start(&world, &object, "b");
        pass(3_000).await;
        scene(world, object, a, b).await;
    });
    let panics = unexpected_panics();
    assert!(panics.is_empty(), "an actor panicked: {panics:#?}");
}

fn works(seen: &Observation) -> bool {
    seen.synced && seen.standing_by.is_none()
}

#[test]
fn one_of_two_replicas_works_and_the_other_only_watches_the_lease() {
    play(async |world, object, a, b| {
        let (leading, standing) = (a.observe().await, b.observe().await);
        assert!(works(&leading), "{leading:#?}");
        assert_eq!((standing.standing_by.as_deref(), standing.workloads), (Some("a_1"), 0));
        assert!(standing.troubles.is_empty(), "{:?}", standing.troubles);
        roll_out(&a, "web", 2, "2", 4_000).await;
        pass(120_000).await;
        assert_eq!((world.creations("EWEB").len(), object.holder()), (1, "a_1".to_owned()));
        assert_eq!(world.asked("ledger.open", "").len(), 1, "who stands by asks nothing of the ledger");
        assert_eq!(world.state().watches_opened, 1, "nor of the cluster");
    });
}

#[test]
fn an_orderly_end_lets_the_other_begin_within_seconds() {
    play(async |_, object, a, b| {
        a.root.send(Drain).await.unwrap();
        assert_eq!(object.holder(), "");
        pass(3_000).await;
        assert!(works(&b.observe().await));
        assert_eq!(object.holder(), "b_1");
    });
}

// Faults: K16
#[test]
fn an_end_in_the_middle_of_a_renewal_gives_the_lease_back() {
    // `a` took it within the first second, and renews it every five.
    for after in (0..5_000).step_by(250) {
        play(async |_, object, a, b| {
            object.becomes(Mood::Slow(400));
            pass(after).await;
            a.root.send(Drain).await.unwrap();
            object.becomes(Mood::Well);
            assert_ne!(object.holder(), "a_1", "told to end {after} ms later");
            pass(3_000).await;
            assert!(works(&b.observe().await), "told to end {after} ms later");
        });
    }
}

// Faults: K16
#[test]
fn an_end_in_order_has_one_bound_for_the_writes_and_one_for_the_lease() {
    play(async |world, object, a, _| {
        world.plan("ledger.store", "shop/web", 0, Fault::Hang);
        world.set(support::stage::deployment("web", 1, 2, "2", support::stage::Stage::Half));
        pass(100).await;
        object.becomes(Mood::Silent);
        let begin = world.now();
        a.root.send(Drain).await.unwrap();
        let took = Duration::from_millis(world.now() - begin);
        assert!(took <= ENDS_WITHIN && ENDS_WITHIN == Duration::from_millis(3_500), "{took:?}");
    });
}

#[test]
fn a_leader_that_is_robbed_ends_its_work_in_order_and_works_again_when_it_is_chosen_again() {
    play(async |world, object, a, b| {
        b.root.send(Drain).await.unwrap();
        world.set(support::stage::deployment("web", 1, 2, "2", support::stage::Stage::Half));
        pass(1_000).await;
        assert_eq!(a.observe().await.rollouts.len(), 1);
        object.is_taken_by("c_1");
        pass(6_000).await;
        let seen = a.observe().await;
        assert_eq!((seen.standing_by.as_deref(), seen.rollouts.len()), (Some("c_1"), 0), "{seen:#?}");
        let writes = world.state().written.len();
        world.set(support::stage::deployment("web", 1, 2, "2", support::stage::Stage::Complete));
        pass(5_000).await;
        assert_eq!(world.state().written.len(), writes, "who stands by writes nothing");
        pass(60_000).await;
        assert!(works(&a.observe().await), "c_1 never renewed it");
        assert_eq!(world.creations("EWEB").len(), 1);
    });
}

#[test]
fn without_the_right_to_the_lease_both_work_and_say_so_and_one_purge_comes_out() {
    for mood in [Mood::Denied, Mood::Silent] {
        in_system(async {
            let (world, object) = (settled(1, &["web"]), Object::default());
            object.becomes(mood);
            world.life_begins();
            let replicas = [start(&world, &object, "a"), start(&world, &object, "b")];
            pass(12_000).await;
            for replica in &replicas {
                let seen = replica.observe().await;
                let said = seen.troubles.iter().any(|trouble| trouble.starts_with("working without the lease"));
                assert!(works(&seen) && said, "{mood:?}: {seen:#?}");
            }
            roll_out(&replicas[0], "web", 2, "2", 4_000).await;
            pass(120_000).await;
            assert_eq!(world.creations("EWEB").len(), 1, "{mood:?}");
            let quiet = replicas[1].observe().await;
            assert!(quiet.rollouts.is_empty() && quiet.purges.is_empty(), "{quiet:#?}");
            object.becomes(Mood::Well);
            pass(90_000).await;
            let both = [replicas[0].observe().await, replicas[1].observe().await];
            assert_eq!(both.iter().filter(|seen| works(seen)).count(), 1, "{mood:?}: {both:#?}");
            assert!(both.iter().all(|seen| seen.troubles.is_empty()), "{mood:?}: {both:#?}");
        });
        let panics = unexpected_panics();
        assert!(panics.is_empty(), "an actor panicked: {panics:#?}");
    }
}
