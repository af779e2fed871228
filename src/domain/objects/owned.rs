//! What the machine of every kind of ours does with its object: it believes or doubts what is seen of it, makes the status durable, sends
//! notices, and ends when the object is gone.
//!
//! ```text
//! event of the object ─▶ step ── News ──▶ the kind says what follows, and changes the draft of its status
//! tick, or any event  ─▶ begin ──▶ the kind judges anew ──▶ rest ──▶ Store, Tell or End
//! ```
//!
//! - The status is written before anything follows from it: a kind acts on `status.durable` and changes `status.draft`.
//! - A sight that is older than what we wrote counts only where two fresh looks in a row show it.
//! - A notice is a part of the status until the outbox has it, so it is sent again after a failure and after a crash.
//!
//! Not for what a kind decides, nor for how the two copies of a status are kept (`own_status`).

use crate::kept::{Object, OwnKind, Remembered};
use crate::own_status::{Belief, OwnStatus};
use crate::status::UNTOLD_MAX;
use kernel::call::Call;
use kernel::id::{NoticeId, Seq};
use kernel::machine::{Machine, Timestamp};
use kernel::retry;
use notices::notice::{Kind, Notice};
use notices::telling::Telling;

/// The fault of an object that was restored.
const RESTORED: &str = "its status is older than what was written: it was restored from a backup, or edited. Open questions were asked anew";

/// The machine of a kind of ours.
pub trait OwnMachine: OwnKind + Machine<Event: From<Event<Self>>> {
    fn own(&self) -> &Owned<Self>;

    /// The newest sight of the object. Its status may be older than [`OwnMachine::durable`].
    fn object(&self) -> &Object<Self> {
        &self.own().object
    }

    /// The status that the object is known to hold.
    fn durable(&self) -> &Self::Status {
        &self.own().status.durable
    }

    /// Why its status cannot be written, while that is so.
    fn trouble(&self) -> Option<&str> {
        self.own().status.trouble()
    }
}

/// What a machine holds of its object. See the module's text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Owned<K: OwnKind> {
    /// The wall clock at timestamp zero, in milliseconds since the Unix epoch.
    pub(crate) epoch_ms: i64,
    /// When something will have changed without an event.
    alarm: Option<Timestamp>,
    /// The newest sight of the object, without its status.
    pub(crate) object: Object<K>,
    /// The UID of the object of this name before it: a watch that lags may show that one once more.
    earlier: Option<String>,
    pub(crate) status: OwnStatus<K::Status>,
    telling: Telling,
    pub(crate) gone: bool,
    /// The reported fault of the object.
    faulty: Option<String>,
    ended: bool,
}

/// The events of an object's life.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event<K: OwnKind> {
    /// A watch showed the object.
    Seen(Box<Object<K>>),
    /// A watch showed that it is gone.
    Missed,
    /// An [`Effect::Look`] was answered: `None` if the object does not exist.
    Looked(Option<Box<Object<K>>>),
    /// It was not, for this reason.
    LookFailed(String),
    /// The write under way is durable, as this version of the object. `whole`: the object holds all that was written.
    Stored {
        /// The object's new `metadata.resourceVersion`.
        version: String,
        /// The answer has all that was written.
        whole: bool,
    },
    /// Another writer was first; this is the object now.
    Conflicted(Box<Object<K>>),
    /// The write has an unknown outcome, for this reason.
    StoreFailed(String),
    /// A notice is on its way in the durable outbox.
    Told(NoticeId),
    /// It is not, for this reason.
    TellFailed(NoticeId, String),
}

/// What is done for an object of any kind.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Effect<K: OwnKind> {
    /// Write the status over this version of the object.
    Store(Box<K::Status>, String),
    /// Read the object afresh.
    Look,
    Tell(Box<Notice>),
    /// Nothing is left to do: the machine may be dropped.
    End,
}

/// What an event changes for the kind, which says what follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum News<K: OwnKind> {
    /// It is another object of this name: what was known of the earlier one counts for nothing.
    Another,
    /// It holds another status than we wrote. The draft begins with that one.
    Rewritten,
    /// It has another spec than this one, which it had before.
    Respecified(Result<K::Spec, String>),
    /// A person asked for a look.
    Poked,
    /// It was restored from a backup, or edited, and remembers less than this, which it held before.
    Restored(Box<K::Status>),
    /// A write was refused: the draft was decided on an older object.
    Refused,
}

impl<K: OwnKind> Effect<K> {
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Store(..) => "store",
            Self::Look => "look",
            Self::Tell(_) => "tell",
            Self::End => "end",
        }
    }
}

impl<K: OwnKind> Owned<K> {
    /// That of an object as it was just seen.
    pub(crate) fn new(epoch_ms: i64, object: Object<K>) -> Self {
        Self {
            epoch_ms,
            alarm: None,
            status: OwnStatus::resumed(object.status.clone(), object.version.clone()),
            object,
            earlier: None,
            telling: Telling::default(),
            gone: false,
            faulty: None,
            ended: false,
        }
    }

    pub(crate) fn spec(&self) -> Option<&K::Spec> {
        self.object.spec.as_ref().ok()
    }

    pub(crate) fn wall_ms(&self, now: Timestamp) -> i64 {
        self.epoch_ms.saturating_add_unsigned(now.as_millis())
    }

    /// When a call that failed now is made again.
    pub(crate) fn again(&self, now: Timestamp) -> impl Fn(u32) -> Timestamp + use<K> {
        retry::SERVICE.from(now, &self.object.uid)
    }

    /// Something will have changed by then without an event.
    pub(crate) fn wake_at(&mut self, at: Timestamp) {
        self.alarm = Some(self.alarm.map_or(at, |earlier| earlier.min(at)));
    }

    /// Takes in an event of the object's life, and says what it changes, in its order.
    #[must_use]
    pub(crate) fn step(&mut self, now: Timestamp, event: Event<K>) -> Vec<News<K>> {
        let again = self.again(now);
        match event {
            Event::Seen(object) => return self.seen(now, *object),
            Event::Looked(Some(object)) => return self.looked(now, *object),
            Event::Conflicted(object) => return self.conflicted(now, *object),
            Event::Missed => self.status.look_now(now),
            Event::Looked(None) => {
                let _ = self.status.looked(now, None);
                self.gone = true;
            }
            Event::LookFailed(why) => self.status.look_failed(&again, why),
            Event::Stored { version, whole } => self.status.stored(version, whole),
            Event::StoreFailed(why) => self.status.failed(&again, &why),
            Event::Told(id) => {
                self.telling.told(&id);
                self.status.draft.untold_mut().retain(|notice| notice.id != id);
            }
            Event::TellFailed(id, why) => self.telling.failed(&id, &again, &why),
        }
        Vec::new()
    }

    /// Its status, if it is the same object.
    fn same<'a>(&self, object: &'a Object<K>) -> Option<&'a K::Status> {
        (object.uid == self.object.uid).then_some(&object.status)
    }

    /// The object was seen by a watch, which may lag behind our own writes.
    fn seen(&mut self, now: Timestamp, object: Object<K>) -> Vec<News<K>> {
        if self.earlier.as_ref() == Some(&object.uid) {
            self.status.look_now(now);
            return Vec::new();
        }
        let same = self.same(&object);
        if self.status.seen(now, same) == Belief::Stale {
            return Vec::new();
        }
        let is_listed_again = same.is_some() && object.version == self.object.version;
        let news = self.take(now, object);
        if is_listed_again {
            self.status.listed_again();
        }
        news
    }

    /// The object was read afresh.
    fn looked(&mut self, now: Timestamp, object: Object<K>) -> Vec<News<K>> {
        let belief = self.status.looked(now, self.same(&object));
        self.believe(now, object, belief)
    }

    /// A write was refused: this is the object now.
    fn conflicted(&mut self, now: Timestamp, object: Object<K>) -> Vec<News<K>> {
        let belief = self.status.conflicted(now, self.same(&object));
        let mut news = self.believe(now, object, belief);
        // What follows from a restore is decided on the present object already.
        if belief != Belief::Restored {
            news.push(News::Refused);
        }
        news
    }

    fn believe(&mut self, now: Timestamp, object: Object<K>, belief: Belief) -> Vec<News<K>> {
        match belief {
            Belief::Stale => Vec::new(),
            Belief::Fresh => self.take(now, object),
            Belief::Restored => self.restored(now, object),
        }
    }

    /// Takes over what the object says, and what it remembers if that is not what we wrote.
    fn take(&mut self, now: Timestamp, object: Object<K>) -> Vec<News<K>> {
        self.gone = false;
        if object.uid != self.object.uid {
            // Notices of the earlier object are sent all the same.
            let telling = std::mem::take(&mut self.telling);
            let earlier = Some(std::mem::take(&mut self.object.uid));
            *self = Self { telling, earlier, ..Self::new(self.epoch_ms, object) };
            return vec![News::Another];
        }
        let mut news = Vec::new();
        if self.status.take(object.status.clone(), object.version.clone()) {
            news.push(News::Rewritten);
        }
        let before = std::mem::replace(&mut self.object, object);
        // Also where a write was refused because of the poke: no watch shows it as news after that.
        let is_poked = before.answers.poked != self.object.answers.poked;
        if before.spec != self.object.spec {
            news.push(News::Respecified(before.spec));
        }
        if is_poked {
            self.status.hurry(now);
            news.push(News::Poked);
        }
        news
    }

    fn restored(&mut self, now: Timestamp, object: Object<K>) -> Vec<News<K>> {
        let lost = Box::new(self.status.give_up());
        let mut news = self.take(now, object);
        news.push(News::Restored(lost));
        self.tell_faulty(now, RESTORED);
        news
    }

    /// Decides again all that is not durable. Notices sent meanwhile stay sent.
    pub(crate) fn decide_anew(&mut self) {
        let untold = self.status.draft.untold().to_vec();
        self.status.decide_anew();
        self.status.draft.untold_mut().retain(|notice| untold.contains(notice));
    }

    /// Ends pauses that are over, and looks at the object for ourselves, in doubt. The first thing after each event and tick.
    pub(crate) fn begin(&mut self, now: Timestamp) -> Option<Effect<K>> {
        self.alarm = None;
        self.status.wake(now);
        self.status.begin_look(now).then_some(Effect::Look)
    }

    /// Sends the durable notices that were not sent yet, and the loose ones; then writes the draft, or ends. The last thing after each
    /// event and tick.
    pub(crate) fn rest(&mut self, now: Timestamp) -> Vec<Effect<K>> {
        let draft = self.status.draft.untold();
        let durable = self.status.durable.untold().iter().filter(|notice| draft.contains(notice));
        let told = self.telling.tell(now, durable).into_iter();
        let mut effects: Vec<_> = told.map(|notice| Effect::Tell(Box::new(notice))).collect();
        self.ended = self.gone && self.telling.is_done();
        if self.gone {
            effects.extend(self.ended.then_some(Effect::End));
        } else {
            effects.extend(self.status.flush(now).map(|(status, version)| Effect::Store(status, version)));
        }
        effects
    }

    /// The next deadline, beside these of the kind; none when it has ended.
    pub(crate) fn next_deadline<const N: usize>(&self, of_kind: [Option<Timestamp>; N]) -> Option<Timestamp> {
        if self.ended {
            return None;
        }
        let telling = self.telling.calls().filter_map(Call::deadline);
        telling.chain([self.status.deadline(), self.alarm].into_iter().chain(of_kind).flatten()).min()
    }

    /// A notice of this kind about the object, without what only the kind knows. `rollout`: what it belongs to.
    pub(crate) fn notice(&self, now: Timestamp, kind: Kind, id: NoticeId, rollout: &str, message: &str) -> Notice {
        Notice {
            id,
            kind,
            at_ms: self.wall_ms(now),
            about: K::subject(self.object.id.clone()).into(),
            seq: Seq::default(),
            rollout: rollout.to_owned(),
            change: String::new(),
            message: message.to_owned(),
        }
    }

    /// Writes a notice into the draft, once. It is sent when that is durable.
    pub(crate) fn announce(&mut self, notice: Notice) {
        let untold = self.status.draft.untold_mut();
        if untold.iter().any(|known| known.id == notice.id) {
            return;
        }
        untold.push(notice);
        while untold.len() > UNTOLD_MAX {
            self.telling.add(untold.remove(0));
        }
    }

    /// Announces a fault of the object. Each cause is announced once in a life.
    pub(crate) fn tell_faulty(&mut self, now: Timestamp, why: &str) {
        if self.faulty.as_deref() == Some(why) {
            return;
        }
        self.faulty = Some(why.to_owned());
        let id = Notice::id_of(&self.object.uid, K::FAULTY, &format!("{}/{why}", self.object.generation));
        self.telling.add(self.notice(now, K::FAULTY, id, &self.object.uid, why));
    }
}
