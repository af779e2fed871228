//! Answers as a CDN writes them, and a look that is driven through them in virtual time.

mod age;
mod blind;
mod look;
mod marker;

mod tiers;
mod turns;

use kernel::machine::{Machine, Timestamp};
use kernel::names::paths::PathSet;

use crate::asked::{Answer, Answers, Body, Headers, Page, Question, Reply};
use crate::look::{Again, Effect, Event, Look, Ordered, Stored};
use crate::marker::Marker;
use crate::tally::Found;
use crate::verdict::Verdict;

fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn page(text: &str) -> Page {
    Page::try_from(text.to_owned()).unwrap()
}

fn paths(items: &[&str]) -> PathSet {
    items.iter().map(|item| item.parse().unwrap()).collect()
}

/// An answer of CloudFront at FRA56-P1, which took no time, with these lines besides; one of them may name another place.
fn answer(path: &str, now: Timestamp, lines: &[(&str, &str)]) -> Answer {
    let own = [("x-amz-cf-id", "id"), ("x-amz-cf-pop", "FRA56-P1"), ("x-cache", "Hit from cloudfront")];
    let own = own.into_iter().filter(|(name, _)| lines.iter().all(|(other, _)| other != name));
    let headers = Headers::of(own.chain(lines.iter().copied()).filter(|(_, value)| *value != "-"), Some("x-version"));
    Answer { path: path.to_owned(), started: now, ended: now, status: 200, headers, body: Body::Unread }
}

fn reply(answer: Answer) -> Reply {
    Reply { hops: vec![answer], failure: None }
}

fn failed(why: &str) -> Reply {
    Reply { hops: Vec::new(), failure: Some(why.to_owned()) }
}

/// What two new pods answer of version 2.
fn pods(question: &Question, now: Timestamp) -> Vec<Reply> {
    let pod = || reply(answer(question.page.path().as_str(), now, &[("x-version", "v2")]));
    if question.asks_pods { vec![pod(), pod()] } else { Vec::new() }
}

/// A look whose stored form is durable at once, and whose questions are answered at once.
struct Stage {
    look: Look,
    now: Timestamp,
    durable: Stored,
    asked: Vec<(Timestamp, Question)>,
    told: Vec<Verdict>,
    again: Vec<u8>,
    ended: bool,
}

impl Stage {
    /// A purge that was ordered at 100 s and is complete at 110 s.
    fn new(marker: Option<&str>, again_max: u8) -> Self {
        Self::of(&["www.example.com/"], marker, again_max)
    }

    fn of(pages: &[&str], marker: Option<&str>, again_max: u8) -> Self {
        let (before, now) = (at(100_000), at(110_000));
        let marker = marker.map(|text| Marker::parse(text).unwrap());
        let pages = pages.iter().map(|text| page(text));
        let look =
            Look::begin(now, Some(before).into(), paths(&["/*"]), pages, marker, Again::up_to(again_max)).unwrap();
        Self::with(look, now)
    }

    fn with(look: Look, now: Timestamp) -> Self {
        let durable = look.stored().clone();
        Self { look, now, durable, asked: Vec::new(), told: Vec::new(), again: Vec::new(), ended: false }
    }

    fn restart(self, now: Timestamp) -> Self {
        let text = serde_json::to_string(&self.durable).unwrap();
        let stored: Stored = serde_json::from_str(&text).unwrap();
        assert_eq!(stored, self.durable, "what is stored is what is read");
        Self::with(Look::resume(now, stored), now)
    }

    fn step(&mut self, event: Event, answers: &mut impl FnMut(Timestamp, &Question) -> Answers) {
        let effects = self.look.step(self.now, event);
        self.perform(effects, answers);
    }

    fn perform(&mut self, effects: Vec<Effect>, answers: &mut impl FnMut(Timestamp, &Question) -> Answers) {
        for effect in effects {
            match effect {
                Effect::Keep(stored) => {
                    let number = stored.number;
                    self.durable = *stored;
                    self.step(Event::Kept(number), answers);
                }
                Effect::Ask(question) => {
                    self.asked.push((self.now, (*question).clone()));
                    let answer = answers(self.now, &question);
                    self.step(Event::Answered(question.id, Box::new(answer)), answers);
                }
                Effect::PurgeAgain(round, verdict) => {
                    let is_blind = self.durable.again_after_s.is_some();
                    assert_eq!(verdict.found, if is_blind { Found::Unknown } else { Found::Stale });
                    self.again.push(round);
                }
                Effect::Tell(verdict) => self.told.push(*verdict),
                Effect::End => self.ended = true,
            }
        }
    }

    /// Lets so many seconds pass.
    fn run(&mut self, seconds: u64, mut answers: impl FnMut(Timestamp, &Question) -> Answers) {
        let until = at(self.now.as_millis() + seconds * 1000);
        if self.look.is_due(self.now) {
            let effects = self.look.tick(self.now);
            self.perform(effects, &mut answers);
        }
        while let Some(next) = self.look.next_deadline().filter(|next| *next <= until) {
            assert!(next > self.now, "a deadline that no tick moves");
            self.now = next;
            let effects = self.look.tick(next);
            self.perform(effects, &mut answers);
        }
        self.now = until;
    }

    /// The same, where the page always answers these lines, and its age in seconds is found from when it was made, in milliseconds.
    fn run_with(&mut self, seconds: u64, made: u64, lines: &[(&str, &str)]) {
        self.run(seconds, |now, question| {
            let age = ((now.as_millis().saturating_sub(made)) / 1000).to_string();
            let lines: Vec<_> = lines.iter().copied().chain([("age", age.as_str())]).collect();
            let edge = reply(answer(question.page.path().as_str(), now, &lines));
            Answers { edge, pods: pods(question, now) }
        });
    }

    fn words(&self) -> Vec<&str> {
        self.told.iter().map(|verdict| verdict.words.as_str()).collect()
    }

    /// When it was asked, in seconds after the purge.
    fn seconds(&self) -> Vec<u64> {
        self.asked.iter().map(|(at, _)| at.as_millis() / 1000 - 110).collect()
    }
}
