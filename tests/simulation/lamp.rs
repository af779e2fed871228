//! A third kind on the actors that every kind has: `objects::lamp`, its ports, and what is done for a lamp alone. Such a kind costs
//! this much.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};

use actix::{Actor, Addr, Context, Handler, Recipient};
use allclear::actors::Env;
use allclear::actors::directory;
use allclear::actors::lifecycle::{StopListener, StopSignal};
use allclear::actors::message::{Died, Observe, ResendDeliveries, TellNotice, Who};
use allclear::actors::object::{Ctx, ObjectActor, ObjectOf, Tended};
use allclear::actors::observation::{Observation, RunningSeen};
use allclear::actors::shell::Drives;
use allclear::actors::supervisor::Supervisor;
use allclear::telemetry::{Form, Metrics};
use async_trait::async_trait;
use kernel::id::{NoticeId, RepoId, Subject};
use kernel::remark::Remark;
use kernel::replica::kind_lifecycle::Part;
use notices::delivery::{InvalidResend, NotTaken, Resend};
use objects::history::figures::Figure;
use objects::history::{Entry, grown};
use objects::kept::Object;
use objects::lamp::{Color, Effect, Lamp, Shown, lamp};
use objects::ports::{Histories, KindPorts, Owner};
use purge::ports::PortError;
use support::fakes::objects::{Calls, Shelf};
use support::fakes::{Fault, Millis, World};
use support::stage::{in_system, settings, unexpected_panics};

const CALLS: Calls = Calls { served: "lamps.served", read: "lamps.read", write: "lamps.write" };

/// Everything outside that lamps need.
#[derive(Clone)]
struct Lamps {
    world: World,
    kind: KindPorts<Lamp>,
    shelf: Shelf<Lamp>,
    /// Each colour that a lamp was lit in.
    lit: Arc<Mutex<Vec<Color>>>,
    pages: Arc<Mutex<Pages>>,
}

/// The one history of a home.
#[derive(Default)]
struct Pages {
    /// What the next calls are answered with.
    refusals: VecDeque<PortError>,
    entries: Vec<Entry>,
    calls: usize,
}

/// The port to it.
struct Written(Arc<Mutex<Pages>>);

#[async_trait]
impl Histories for Written {
    async fn keep(&self, of: &Owner, remembered: &[Entry], news: &[Entry]) -> Result<Vec<Figure>, PortError> {
        assert_eq!((of.kind, of.name.as_str()), ("Lamp", "hall"));
        let mut pages = self.0.lock().unwrap();
        pages.calls += 1;
        if let Some(refusal) = pages.refusals.pop_front() {
            return Err(refusal);
        }
        let Some(grown) = grown(&pages.entries, remembered, news) else { return Ok(Vec::new()) };
        pages.entries = grown.entries;
        Ok(grown.figures)
    }
}

impl Lamps {
    fn new(world: &World) -> Self {
        let shelf = Shelf::default();
        let pages = Arc::<Mutex<Pages>>::default();
        let kind = world.kind_ports(shelf.port(world, CALLS));
        let kind = KindPorts { histories: Arc::new(Written(pages.clone())), ..kind };
        Self { world: world.clone(), kind, shelf, lit: Arc::default(), pages }
    }

    fn lit(&self) -> Vec<Color> {
        self.lit.lock().unwrap().clone()
    }

    /// The status of the one lamp, as the API server has it.
    fn status(&self) -> Shown {
        self.shelf.get(&RepoId::new("home", "hall")).unwrap().status
    }
}

impl Tended for Lamps {
    type Machine = Lamp;
    type Beside = ();
    type Extra = ();

    const NAME: &'static str = "Lamp";
    const PLURAL: &'static str = "Lamps";
    const CHILD: &'static str = "lamp";
    const FIND: &'static str = "find_lamps";
    const HALTED: &'static str = "nothing is lit";
    const RIGHTS: &'static str = "";
    const WATCH: Part = Part::Repos;
    const ONE_GROUP: bool = true;

    fn ports(&self) -> &KindPorts<Lamp> {
        &self.kind
    }

    fn within(mut self, places: &BTreeSet<usize>) -> Self {
        self.kind.keep(places);
        self
    }

    fn beside(&self, _: &Env, _: StopListener, _: Recipient<Died>) -> ((), Option<Recipient<Observe>>) {
        ((), None)
    }

    fn machine(_: &Env, epoch_ms: i64, object: Object<Lamp>) -> Lamp {
        Lamp::new(epoch_ms, object)
    }

    fn extra(_: &Metrics) {}

    fn perform(actor: &mut ObjectActor<Self>, effect: Effect, ctx: &mut Ctx<Self>) {
        match effect {
            Effect::Object(effect) => actor.perform_own(effect, ctx),
            Effect::Light(color) => {
                assert_eq!(actor.tended.status().color, color, "the status is written before a lamp is lit");
                actor.tended.lit.lock().unwrap().push(color);
            }
        }
    }

    fn peers_rebuilt(actor: &mut ObjectActor<Self>, ctx: &mut Ctx<Self>) {
        actor.tick(ctx);
    }

    fn stored(_: &mut ObjectActor<Self>, _: Option<(&Shown, &Shown)>) {}

    fn remarks(_: &ObjectOf<Self>, _: &Shown) -> Vec<Remark> {
        Vec::new()
    }

    fn news(written: &ObjectOf<Self>, before: &Shown, _: i64) -> Vec<Entry> {
        let is_new = written.status.changes != before.changes;
        Self::remembered(&written.status).into_iter().filter(|_| is_new).collect()
    }

    fn remembered(status: &Shown) -> Vec<Entry> {
        let Shown { color, changes, .. } = status.clone();
        vec![Entry { seq: changes, revision: color, outcome: "Succeeded".to_owned(), ..Entry::default() }]
    }

    fn shown(_: Option<&Lamp>, troubles: Vec<String>) -> Observation {
        Observation { running: Some(RunningSeen { troubles, ..RunningSeen::default() }), ..Observation::default() }
    }

    fn name(id: &RepoId) -> &str {
        &id.name
    }

    fn who(id: RepoId) -> Who {
        Who::Repo(id)
    }

    fn id_of(who: Who) -> Option<RepoId> {
        match who {
            Who::Repo(id) => Some(id),
            _ => None,
        }
    }

    fn count(_: &Metrics, _: usize) {}
}

/// The outbox. It takes nothing at first.
#[derive(Default)]
struct Outbox {
    refuses: usize,
    took: Arc<Mutex<Vec<NoticeId>>>,
    asked: Arc<Mutex<Vec<(Subject, String)>>>,
}

impl Actor for Outbox {
    type Context = Context<Self>;
}

impl Handler<TellNotice> for Outbox {
    type Result = Result<(), NotTaken>;

    fn handle(&mut self, TellNotice(notice): TellNotice, _: &mut Self::Context) -> Self::Result {
        if self.refuses > 0 {
            self.refuses -= 1;
            return Err(NotTaken::Full);
        }
        self.took.lock().unwrap().push(notice.id);
        Ok(())
    }
}

impl Handler<ResendDeliveries> for Outbox {
    type Result = ();

    fn handle(&mut self, ResendDeliveries(subject, request): ResendDeliveries, _: &mut Self::Context) {
        self.asked.lock().unwrap().push((subject, request.at));
    }
}

/// A lamp that a person wants red, under its supervisor.
struct Home {
    lamps: Lamps,
    told: Arc<Mutex<Vec<NoticeId>>>,
    /// Who asked for notices again, and when.
    asked: Arc<Mutex<Vec<(Subject, String)>>>,
    metrics: Arc<Metrics>,
    supervisor: Addr<Supervisor<Lamps>>,
    _signal: StopSignal,
}

impl Home {
    fn begin(lamps: Lamps) -> Self {
        lamps.world.life_begins();
        let metrics = Arc::new(Metrics::default());
        let (ports, settings) = (lamps.world.ports(), Arc::new(settings()));
        let env = Env { ports, metrics: metrics.clone(), settings, complaints: Arc::default() };
        let told = Arc::<Mutex<Vec<NoticeId>>>::default();
        let asked = Arc::<Mutex<Vec<_>>>::default();
        let outbox = Outbox { refuses: 2, took: told.clone(), asked: asked.clone() }.start();
        let outbox = directory::Outbox { tell: outbox.clone().recipient(), resend: outbox.recipient() };
        let signal = StopSignal::default();
        let supervisor = Supervisor::launch(env, lamps.clone(), outbox, signal.listener(), None);
        Self { lamps, told, asked, metrics, supervisor, _signal: signal }
    }

    async fn pass(&self, millis: Millis) {
        tokio::time::sleep(std::time::Duration::from_millis(millis)).await;
    }

    fn restarts(&self, actor: &str) -> bool {
        self.metrics.text(Form::Prometheus).contains(&format!("allclear_restarts_total{{actor=\"{actor}\"}} 1"))
    }
}

/// Runs a home with one red lamp, where these calls go wrong.
fn home(plan: &[(&'static str, Fault)], play: impl AsyncFnOnce(&Home)) {
    in_system(async {
        let world = World::new(1);
        let lamps = Lamps::new(&world);
        lamps.shelf.apply(lamp("hall", "red"));
        plan.iter().for_each(|(call, fault)| world.plan(call, "", 0, *fault));
        let home = Home::begin(lamps);
        play(&home).await;
        assert!(world.plan_is_done());
        assert!(world.state().contradictions.is_empty());
    });
    let panics = unexpected_panics();
    assert!(panics.is_empty(), "{panics:#?}");
}

#[test]
fn a_lamp_is_written_then_lit_and_its_notice_is_sent_until_the_outbox_has_it() {
    home(&[], async |home| {
        home.pass(60_000).await;
        assert_eq!(home.lamps.lit(), ["red"]);
        assert_eq!(home.told.lock().unwrap().len(), 1, "refused twice, then taken once");
        assert!(home.lamps.status().untold.is_empty());
        let seen = home.supervisor.send(Observe).await.unwrap();
        assert_eq!(seen.running.unwrap().troubles, [""; 0]);
    });
}

#[test]
fn what_a_person_changes_under_a_write_is_decided_anew() {
    home(&[("lamps.write", Fault::Delay(5_000))], async |home| {
        home.pass(1_000).await;
        home.lamps.shelf.apply(lamp("hall", "green"));
        home.pass(60_000).await;
        assert_eq!((home.lamps.lit(), home.lamps.status().changes), (vec!["green".to_owned()], 1));
    });
}

#[test]
fn an_actor_that_crashes_is_rebuilt_from_the_status() {
    for call in ["lamps.write", "events.publish"] {
        home(&[(call, Fault::Panic)], async |home| {
            home.pass(60_000).await;
            assert!(home.restarts("lamp"), "{call}");
            assert_eq!((home.lamps.lit().last().unwrap().as_str(), home.lamps.status().changes), ("red", 1), "{call}");
            assert_eq!(home.told.lock().unwrap().len(), 1, "{call}");
        });
    }
}

#[test]
fn a_watch_that_crashes_is_rebuilt_with_all_its_objects() {
    home(&[], async |home| {
        home.pass(60_000).await;
        home.lamps.shelf.panic();
        home.pass(5_000).await;
        assert!(home.restarts("repos"));
        home.lamps.shelf.apply(lamp("hall", "green"));
        home.pass(60_000).await;
        assert_eq!(home.lamps.lit().last().unwrap(), "green");
    });
}

#[test]
fn what_a_lamp_has_gone_through_is_kept_once_and_nothing_is_written_at_rest() {
    home(&[], async |home| {
        home.pass(60_000).await;
        home.lamps.shelf.apply(lamp("hall", "green"));
        home.pass(4 * 3_600_000).await;
        let pages = home.lamps.pages.lock().unwrap();
        let kept: Vec<_> = pages.entries.iter().map(|entry| (entry.seq, entry.revision.as_str())).collect();
        assert_eq!((kept, pages.calls), (vec![(1, "red"), (2, "green")], 2));
        let text = home.metrics.text(Form::Prometheus);
        let counted = "allclear_deployments_total{kind=\"Lamp\",namespace=\"home\",name=\"hall\",environment=\"\"} 2";
        assert!(text.contains(counted), "{text}");
    });
}

#[test]
fn a_history_that_cannot_be_written_is_tried_again_and_rarely_where_a_person_must_act() {
    home(&[], async |home| {
        let passing = PortError::passing("create it", "no route");
        let lasting = PortError::lasting("create it", "the cluster does not have the kind");
        home.lamps.pages.lock().unwrap().refusals = [passing, lasting.clone(), lasting].into();
        home.pass(1_800_000).await;
        assert_eq!((home.lamps.lit(), home.lamps.pages.lock().unwrap().calls), (vec!["red".to_owned()], 2));
        // What happens meanwhile waits with it.
        home.lamps.shelf.apply(lamp("hall", "green"));
        home.pass(5_400_000).await;
        assert_eq!(
            (home.lamps.lit(), home.lamps.pages.lock().unwrap().calls),
            (vec!["red".to_owned(), "green".to_owned()], 3)
        );
        home.pass(3_600_000).await;
        let pages = home.lamps.pages.lock().unwrap();
        assert_eq!((pages.entries.len(), pages.calls), (2, 4));
    });
}

#[test]
fn a_lamp_that_is_deleted_is_let_go() {
    home(&[], async |home| {
        home.pass(60_000).await;
        home.lamps.shelf.remove(&RepoId::new("home", "hall"));
        home.pass(60_000).await;
        home.lamps.shelf.apply(Object { uid: "another".to_owned(), ..lamp("hall", "blue") });
        home.pass(60_000).await;
        assert_eq!(home.lamps.lit(), ["red", "blue"]);
        assert_eq!(home.lamps.status().changes, 1, "it is another lamp");
    });
}

#[test]
fn the_answer_to_a_write_of_an_earlier_lamp_is_none_to_that_of_another_one() {
    home(&[("lamps.write", Fault::Delay(5_000)), ("lamps.write", Fault::Delay(10_000))], async |home| {
        home.pass(1_000).await;
        home.lamps.shelf.apply(Object { uid: "another".to_owned(), ..lamp("hall", "blue") });
        home.pass(7_000).await;
        assert_eq!(home.lamps.lit(), [""; 0], "its own write is on its way, and none is sent beside it");
        home.pass(60_000).await;
        assert_eq!((home.lamps.lit(), home.lamps.status().changes), (vec!["blue".to_owned()], 1));
    });
}

#[test]
fn what_its_owner_asks_to_be_sent_again_is_asked_of_the_outbox_once() {
    home(&[], async |home| {
        let ask = |request| {
            let mut asking = lamp("hall", "red");
            asking.answers.resend = request;
            home.lamps.shelf.apply(asking);
        };
        let request = |at: &str| Some(Resend::parse(&format!("{at} a1")));
        let said = |at: &str| (Subject::Repo(RepoId::new("home", "hall")), at.to_owned());
        ask(request("1"));
        home.pass(10_000).await;
        ask(request("2"));
        home.pass(10_000).await;
        let asked = home.asked.lock().unwrap().clone();
        assert_eq!(asked, [said("1"), said("2")]);
        ask(Some(Err(InvalidResend::Form)));
        home.pass(10_000).await;
        let troubles = home.supervisor.send(Observe).await.unwrap().running.unwrap().troubles;
        let [trouble] = troubles.as_slice() else { panic!("{troubles:?}") };
        assert!(trouble.starts_with("the annotation allclear.dev/resend of repo/home/hall is not a time"), "{trouble}");
        ask(None);
        home.pass(10_000).await;
        assert_eq!(home.supervisor.send(Observe).await.unwrap().running.unwrap().troubles, [""; 0]);
        assert_eq!(home.asked.lock().unwrap().len(), 2);
    });
}
