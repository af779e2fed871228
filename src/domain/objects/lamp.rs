//! A kind with nothing but what every kind has: a lamp shows the colour that its spec wants. A third kind costs this much in the domain.

use crate::kept::{Answers, Finalizers, Object, OwnKind, Remembered};
use crate::owned::{self, News, OwnMachine, Owned};
use kernel::id::{RepoId, Subject};
use kernel::machine::{Machine, Timestamp};
use notices::notice::{Kind, Notice};

/// What is wanted of a lamp: its colour.
pub type Color = String;

/// What is remembered of a lamp.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Shown {
    pub color: Color,
    /// How often that changed. It never decreases.
    pub changes: u64,
    pub serial: u64,
    pub untold: Vec<Notice>,
}

/// The machine of a lamp.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Lamp {
    own: Owned<Self>,
    lit: Color,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    Object(owned::Event<Lamp>),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    Object(owned::Effect<Lamp>),
    Light(Color),
}

/// A lamp of this name that a person applied.
pub fn lamp(name: &str, color: &str) -> Object<Lamp> {
    Object {
        id: RepoId::new("home", name),
        uid: format!("{name}-uid"),
        generation: 1,
        version: "1".to_owned(),
        spec: Ok(color.to_owned()),
        answers: Answers::default(),
        status: Shown::default(),
        deleting: false,
        finalizers: Finalizers::default(),
    }
}

impl Remembered for Shown {
    fn serial(&self) -> u64 {
        self.serial
    }

    fn set_serial(&mut self, serial: u64) {
        self.serial = serial;
    }

    fn decisive(&self) -> Self {
        Self { serial: 0, ..self.clone() }
    }

    fn untold(&self) -> &[Notice] {
        &self.untold
    }

    fn untold_mut(&mut self) -> &mut Vec<Notice> {
        &mut self.untold
    }
}

/// Names, subjects and notices are closed sets: a lamp borrows those of a Repo.
impl OwnKind for Lamp {
    type Id = RepoId;
    type Spec = Color;
    type Status = Shown;

    const FAULTY: Kind = Kind::RepoFaulty;

    fn subject(id: RepoId) -> Subject {
        Subject::Repo(id)
    }
}

impl OwnMachine for Lamp {
    fn own(&self) -> &Owned<Self> {
        &self.own
    }
}

impl From<owned::Event<Lamp>> for Event {
    fn from(event: owned::Event<Lamp>) -> Self {
        Self::Object(event)
    }
}

impl Lamp {
    pub fn new(epoch_ms: i64, object: Object<Self>) -> Self {
        Self { own: Owned::new(epoch_ms, object), lit: Color::new() }
    }

    fn learn(&mut self, news: News<Self>) {
        match news {
            News::Another => self.lit = Color::new(),
            News::Respecified(_) | News::Refused => self.own.decide_anew(),
            News::Restored(lost) => {
                let changes = &mut self.own.status.draft.changes;
                *changes = lost.changes.max(*changes);
            }
            News::Rewritten | News::Poked => {}
        }
    }

    fn advance(&mut self, now: Timestamp) -> Vec<Effect> {
        let mut effects = Vec::from_iter(self.own.begin(now).map(Effect::Object));
        if let Some(wanted) = self.own.spec().cloned()
            && self.own.status.draft.color != wanted
            && self.own.status.is_free(now)
        {
            let draft = &mut self.own.status.draft;
            (draft.color, draft.changes) = (wanted, draft.changes + 1);
            let (changes, color) = (draft.changes.to_string(), draft.color.clone());
            let id = Notice::id_of(&self.own.object.uid, Kind::RunStarted, &changes);
            self.own.announce(self.own.notice(now, Kind::RunStarted, id, &changes, &color));
        }
        let durable = &self.own.status.durable.color;
        if self.lit != *durable && !self.own.gone {
            self.lit.clone_from(durable);
            effects.push(Effect::Light(self.lit.clone()));
        }
        effects.extend(self.own.rest(now).into_iter().map(Effect::Object));
        effects
    }
}

impl Machine for Lamp {
    type Event = Event;
    type Effect = Effect;

    fn step(&mut self, now: Timestamp, Event::Object(event): Event) -> Vec<Effect> {
        for news in self.own.step(now, event) {
            self.learn(news);
        }
        self.advance(now)
    }

    fn tick(&mut self, now: Timestamp) -> Vec<Effect> {
        self.advance(now)
    }

    fn next_deadline(&self) -> Option<Timestamp> {
        self.own.next_deadline([])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::owned::{Effect as Own, Event as Life};

    const START: Timestamp = Timestamp::from_millis(0);

    /// The status that is to be written, if these effects are to write one and nothing else.
    fn stored(effects: Vec<Effect>) -> Shown {
        match <[Effect; 1]>::try_from(effects) {
            Ok([Effect::Object(Own::Store(status, _))]) => *status,
            other => panic!("{other:?}"),
        }
    }

    fn is_stored(version: &str) -> Event {
        Event::Object(Life::Stored { version: version.to_owned(), whole: true })
    }

    #[test]
    fn the_status_is_written_before_its_effect() {
        let mut machine = Lamp::new(0, lamp("hall", "red"));
        let status = stored(machine.tick(START));
        assert_eq!((status.color.as_str(), status.changes, status.serial), ("red", 1, 1));
        let effects = machine.step(START, is_stored("2"));
        assert!(matches!(&effects[..], [Effect::Light(_), Effect::Object(Own::Tell(_))]), "{effects:?}");
        assert_eq!(machine.durable(), &status);
    }

    #[test]
    fn a_write_that_is_refused_is_decided_anew() {
        let mut machine = Lamp::new(0, lamp("hall", "red"));
        stored(machine.tick(START));
        let now = Object { version: "2".to_owned(), ..lamp("hall", "green") };
        let status = stored(machine.step(START, Event::Object(Life::Conflicted(Box::new(now)))));
        assert_eq!((status.color.as_str(), status.changes, status.untold.len()), ("green", 1, 1));
        assert_eq!(status.untold[0].message, "green");
    }

    #[test]
    fn a_notice_that_failed_is_sent_again_until_it_is_told_and_then_leaves_the_status() {
        let mut machine = Lamp::new(0, lamp("hall", "red"));
        machine.tick(START);
        let mut effects = machine.step(START, is_stored("2"));
        let Some(Effect::Object(Own::Tell(notice))) = effects.pop() else { panic!("{effects:?}") };
        let failed = Life::TellFailed(notice.id.clone(), "no answer".to_owned());
        assert_eq!(machine.step(START, failed.into()), []);
        let again = machine.next_deadline().expect("it is sent again");
        assert_eq!(machine.tick(again), [Effect::Object(Own::Tell(notice.clone()))]);
        let status = stored(machine.step(again, Life::Told(notice.id).into()));
        assert_eq!((status.untold.len(), status.serial), (0, 2));
    }

    #[test]
    fn a_restore_is_believed_after_two_looks_and_no_number_is_lost() {
        let mut machine = Lamp::new(0, lamp("hall", "red"));
        machine.tick(START);
        machine.step(START, is_stored("2"));
        let backup = || Object { version: "9".to_owned(), ..lamp("hall", "blue") };
        assert_eq!(machine.step(START, Life::Seen(Box::new(backup())).into()), [], "a watch may lag behind");
        let look = machine.next_deadline().expect("a look");
        assert_eq!(machine.tick(look), [Effect::Object(Own::Look)]);
        machine.step(look, Life::Looked(Some(Box::new(backup()))).into());
        let look = machine.next_deadline().expect("another look");
        assert_eq!(machine.tick(look), [Effect::Object(Own::Look)]);
        let effects = machine.step(look, Life::Looked(Some(Box::new(backup()))).into());
        let told = effects.iter().find_map(|effect| match effect {
            Effect::Object(Own::Tell(notice)) => Some(notice.kind),
            _ => None,
        });
        assert_eq!(told, Some(Kind::RepoFaulty));
        let written = effects.iter().find_map(|effect| match effect {
            Effect::Object(Own::Store(status, _)) => Some((status.color.as_str(), status.changes)),
            _ => None,
        });
        assert_eq!(written, Some(("blue", 2)));
    }

    #[test]
    fn an_object_that_is_gone_ends_its_machine_and_another_of_its_name_begins_anew() {
        let mut machine = Lamp::new(0, lamp("hall", "red"));
        machine.tick(START);
        machine.step(START, is_stored("2"));
        assert_eq!(machine.step(START, Life::Missed.into()), [Effect::Object(Own::Look)]);
        assert_eq!(machine.step(START, Life::Looked(None).into()), [Effect::Object(Own::End)]);
        assert_eq!(machine.next_deadline(), None);
        let another = Object { uid: "another".to_owned(), ..lamp("hall", "red") };
        let status = stored(machine.step(START, Life::Seen(Box::new(another)).into()));
        assert_eq!((status.changes, status.serial), (1, 1));
    }

    #[test]
    fn a_watch_that_lags_brings_no_earlier_object_back_and_a_fresh_look_does() {
        let earlier = lamp("hall", "red");
        let mut machine = Lamp::new(0, earlier.clone());
        let another = Object { uid: "another".to_owned(), ..lamp("hall", "blue") };
        machine.step(START, Life::Looked(Some(Box::new(another))).into());
        let effects = machine.step(START, Life::Seen(Box::new(earlier.clone())).into());
        assert_eq!((effects, machine.object().uid.as_str()), (vec![Effect::Object(Own::Look)], "another"));
        machine.step(START, Life::Looked(Some(Box::new(earlier.clone()))).into());
        assert_eq!(machine.object().uid, earlier.uid, "a cluster that was restored from a backup has it again");
    }
}
