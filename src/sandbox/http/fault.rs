//! Things that go wrong between a client and a stand-in.

use std::fmt;
use std::time::Duration;

use super::message::{Reply, Request};

/// Something to go wrong. Of several faults that match a request the one injected first is used.
pub struct Fault {
    /// Whether the stand-in gets to see the request.
    pub when: When,
    /// Which requests it happens to.
    pub matches: Box<dyn Fn(&Request) -> bool + Send + Sync>,
    pub action: Action,
    /// How many requests it happens to before it is used up; `u32::MAX` is as good as for ever.
    pub times: u32,
}

/// On which side of the stand-in a [`Fault`] strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// The stand-in never sees the request (a delayed one it sees late).
    Before,
    /// The stand-in has applied the request; its answer is lost, late or replaced.
    After,
}

/// What a [`Fault`] does.
#[derive(Debug)]
pub enum Action {
    /// Answers this instead. A [`Body::Stream`] can be sent only once: further times have an empty body.
    Answer(Reply),
    /// Waits, in real time, then goes on as usual.
    Delay(Duration),
    /// Closes the connection without a byte of an answer.
    Cut,
    /// Never answers and keeps the connection open until the client or the server ends it.
    Hold,
}

impl Fault {
    /// A fault that happens once, to any request.
    pub fn once(when: When, action: Action) -> Fault {
        Fault { when, matches: Box::new(|_| true), action, times: 1 }
    }

    /// Limits the fault to some requests.
    pub fn matching(mut self, matches: impl Fn(&Request) -> bool + Send + Sync + 'static) -> Fault {
        self.matches = Box::new(matches);
        self
    }

    /// Lets the fault happen this many times.
    pub fn times(mut self, times: u32) -> Fault {
        self.times = times;
        self
    }
}

impl fmt::Debug for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fault")
            .field("when", &self.when)
            .field("action", &self.action)
            .field("times", &self.times)
            .finish_non_exhaustive()
    }
}
