//! What this month's purges cost: the paths that CloudFront has accepted from us in each AWS account, as it bills them.
//!
//! ```text
//! begun ──▶ read ──▶ counted by reference ──▶ stored ──▶ …
//!             │                └── at the budget: told once a month
//!             └── not read yet: what is accepted waits, and no number is shown
//! ```
//!
//! CloudFront bills each path of an accepted invalidation, a wildcard as one, after the first thousand of an account's month
//! (<https://aws.amazon.com/cloudfront/pricing/>). AWS's months are those of UTC
//! (<https://docs.aws.amazon.com/awsaccountbilling/latest/aboutv2/billing-reports-costusage-details.html>).
//!
//! A purge is counted by its invalidation, which is the same however often a call is repeated and whoever repeats it. The record of a
//! rollout is what makes this exact over restarts: a purge is in it before it is sent, so the next life orders it again, and counts it
//! unless it is among those counted. Those of others that we follow are counted too: in a group each member knows what it makes and
//! follows.
//!
//! Nothing waits for it, and no purge is held back by it. Not for what a namespace may spend: that is `purge`.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use kernel::call::Call;
use kernel::machine::{Machine, Timestamp};
use kernel::names::account::AccountName;
use kernel::retry;

/// Paths of a month of an account that CloudFront does not bill.
pub const FREE: u64 = 1_000;

/// What each further one costs, in thousandths of a US dollar.
pub const PRICE_THOUSANDTHS: u64 = 5;

/// Purges that are remembered as counted, the newest: those that may still be ordered again. After a crash that is what was
/// under way; 300 rollouts in one minute are the most that is measured.
const COUNTED_MAX: usize = 512;

/// Purges that wait for what was counted before to be read.
const WAITING_MAX: usize = 4_096;

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// A month of UTC, as a count since the beginning of our era.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Month(i64);

impl Month {
    /// The month of this time of the wall's clock, in milliseconds since the Unix epoch.
    pub fn of(wall_ms: i64) -> Self {
        // Days since 0000-03-01, so that a leap day is the last of a year; eras of 400 years are alike
        // (<https://howardhinnant.github.io/date_algorithms.html>).
        let days = wall_ms.div_euclid(DAY_MS).saturating_add(719_468);
        let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
        let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
        let of_year = day - (365 * year + year / 4 - year / 100);
        let month = (5 * of_year + 2) / 153;
        Self((era * 400 + year) * 12 + month + 2)
    }

    /// The month of an invalidation: by CloudFront's word of when it was made, unless our clock says that this is yet to come, by a day or
    /// more; then one of them is wrong, and all that is counted goes by ours.
    pub fn of_invalidation(created_ms: Option<i64>, wall_ms: i64) -> Self {
        Self::of(created_ms.filter(|created| *created < wall_ms.saturating_add(DAY_MS)).unwrap_or(wall_ms))
    }

    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }

    /// When it begins, in milliseconds since the Unix epoch.
    pub const fn begins_ms(self) -> i64 {
        // The inverse of `of`.
        let (year, month) = (self.0.div_euclid(12), self.0.rem_euclid(12));
        let (year, month) = if month >= 2 { (year, month - 2) } else { (year - 1, month + 10) };
        let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
        let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + (153 * month + 2) / 5;
        (days - 719_468) * DAY_MS
    }

    /// In words: `2026-11`.
    pub fn words(self) -> String {
        format!("{}-{:02}", self.0.div_euclid(12), self.0.rem_euclid(12) + 1)
    }
}

/// What an account comes to in a month.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Sum {
    /// Paths that were accepted.
    pub paths: u64,
    /// Paths that were not sent, because another purge covered them.
    #[serde(default)]
    pub saved: u64,
}

impl Sum {
    /// What of it is billed, in thousandths of a US dollar, as far as nobody else purges in the account.
    pub const fn thousandths(self) -> u64 {
        self.paths.saturating_sub(FREE).saturating_mul(PRICE_THOUSANDTHS)
    }

    /// In words: `1,200 paths (200 beyond the free 1,000: 1.00 USD), 40 saved by sharing`.
    pub fn words(self) -> String {
        let beyond = self.paths.saturating_sub(FREE);
        let (dollars, cents) = (self.thousandths() / 1_000, self.thousandths() % 1_000 / 10);
        let billed = match beyond {
            0 => format!("within the free {FREE}"),
            beyond => format!("{beyond} beyond the free {FREE}: {dollars}.{cents:02} USD"),
        };
        format!("{} paths ({billed}), {} saved by sharing", self.paths, self.saved)
    }
}

/// The sums of a month, as they are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Book {
    pub month: Month,
    pub accounts: BTreeMap<AccountName, Sum>,
    /// The accounts whose budget was told to be used up.
    #[serde(default)]
    told: BTreeSet<AccountName>,
    /// The purges that were counted last.
    #[serde(default)]
    counted: VecDeque<String>,
}

impl Book {
    /// Reads what was kept; `None` for what is none.
    pub fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// The text that it is kept as.
    pub fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Each account in words.
    pub fn words(&self) -> Vec<String> {
        let of_one = |(name, sum): (&AccountName, &Sum)| {
            format!("{} in AWS account {name}: {}", self.month.words(), sum.words())
        };
        self.accounts.iter().map(of_one).collect()
    }

    /// A later month begins with nothing. One that is earlier does not come back: clocks differ by a little.
    fn turn(&mut self, month: Month) {
        if month > self.month {
            self.begin(month);
        }
    }

    fn begin(&mut self, month: Month) {
        (self.month, self.accounts, self.told) = (month, BTreeMap::new(), BTreeSet::new());
    }

    /// Counts a purge, unless it was counted before; says whether it is news.
    fn count(&mut self, purge: &Purge) -> bool {
        if self.counted.contains(&purge.key) {
            return false;
        }
        self.counted.push_back(purge.key.clone());
        let over = self.counted.len().saturating_sub(COUNTED_MAX);
        self.counted.drain(..over);
        self.turn(purge.month);
        // What was accepted in a month that is over is on that month's bill.
        if purge.month == self.month {
            let sum = self.accounts.entry(purge.account.clone()).or_default();
            let of = if purge.is_saved { &mut sum.saved } else { &mut sum.paths };
            *of = of.saturating_add(purge.paths);
        }
        true
    }
}

/// A purge that counts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Purge {
    pub account: AccountName,
    /// The id of its invalidation; of one that was saved, its reference.
    pub key: String,
    pub paths: u64,
    /// When CloudFront made the invalidation, by its own word where it says so.
    pub month: Month,
    /// It was not sent: another one covers it.
    pub is_saved: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// The process began, or the actor that drives this machine was rebuilt.
    Begun,
    /// What was kept, at this time of the wall's clock; `None`: nothing was.
    Read(Option<Box<Book>>, i64),
    ReadFailed(String),
    /// A purge was accepted, or saved, as is known at this time of the wall's clock.
    Counted(Purge, i64),
    Stored,
    StoreFailed(String),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    Read,
    Store(Box<Book>),
    /// The budget of an account is used up, by so many paths.
    Tell(AccountName, u64),
}

impl Effect {
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Read => "read_bill",
            Self::Store(_) => "store_bill",
            Self::Tell(..) => "tell_budget",
        }
    }
}

/// The machine. See the module's text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Bill {
    /// Paths of a month in each account; 0: none is set.
    budget: u64,
    /// `None` until what was kept is read.
    book: Option<Book>,
    waiting: Vec<Purge>,
    read: Call,
    store: Call,
    /// There is more than was stored last.
    is_unstored: bool,
    /// When the next month begins, as far as is known.
    turns: Option<Timestamp>,
}

impl Bill {
    /// One that knows nothing yet.
    pub fn new(budget: u64) -> Self {
        let (read, store) = (Call::default(), Call::default());
        Self { budget, book: None, waiting: Vec::new(), read, store, is_unstored: false, turns: None }
    }

    /// The sums of the month; `None` until they are known.
    pub const fn book(&self) -> Option<&Book> {
        self.book.as_ref()
    }

    /// Why the sums are not known, or not kept, where that failed.
    pub fn failure(&self) -> Option<&str> {
        self.read.reason().or_else(|| self.store.reason())
    }

    /// The accounts whose budget is used up, in words.
    pub fn over_budget(&self) -> Vec<String> {
        let Some(book) = self.book.as_ref().filter(|_| self.budget > 0) else { return Vec::new() };
        let over = book.accounts.iter().filter(|(_, sum)| sum.paths >= self.budget);
        let words = |(name, sum): (&AccountName, &Sum)| {
            format!(
                "{} paths of {} were purged in AWS account {name}: purge.budget is {}; nothing is held back",
                sum.paths,
                book.month.words(),
                self.budget
            )
        };
        over.map(words).collect()
    }

    /// It is this time by the wall's clock: the month of the book follows.
    fn meet(&mut self, now: Timestamp, wall_ms: i64) {
        let Some(book) = &mut self.book else { return };
        let month = Month::of(wall_ms);
        // No clock is right that differs by so much: the one of an earlier time was wrong, and would stop the count for months.
        if book.month > month.next() {
            book.begin(month);
        }
        book.turn(month);
        let left_ms = book.month.next().begins_ms().saturating_sub(wall_ms);
        self.turns = Some(now.after(Duration::from_millis(u64::try_from(left_ms).unwrap_or(1).max(1))));
    }

    fn counted(&mut self, purge: Purge) -> Vec<Effect> {
        let Some(book) = &mut self.book else {
            if self.waiting.len() < WAITING_MAX {
                self.waiting.push(purge);
            }
            return Vec::new();
        };
        if !book.count(&purge) {
            return Vec::new();
        }
        self.is_unstored = true;
        let paths = book.accounts.get(&purge.account).map_or(0, |sum| sum.paths);
        let is_news = self.budget > 0 && paths >= self.budget && book.told.insert(purge.account.clone());
        is_news.then_some(Effect::Tell(purge.account, paths)).into_iter().collect()
    }

    /// Reads or stores what is due.
    fn advance(&mut self, now: Timestamp) -> Vec<Effect> {
        if self.book.is_none() {
            return if self.read.is_due(now) {
                self.read.asked();
                vec![Effect::Read]
            } else {
                Vec::new()
            };
        }
        match &self.book {
            Some(book) if self.is_unstored && self.store.is_due(now) => {
                self.store.asked();
                self.is_unstored = false;
                vec![Effect::Store(Box::new(book.clone()))]
            }
            Some(_) | None => Vec::new(),
        }
    }
}

impl Machine for Bill {
    type Event = Event;
    type Effect = Effect;

    fn step(&mut self, now: Timestamp, event: Event) -> Vec<Effect> {
        let mut effects = match event {
            Event::Begun => Vec::new(),
            // Read twice, it is what we know already.
            Event::Read(..) if self.book.is_some() => Vec::new(),
            Event::Read(kept, wall_ms) => {
                self.read.answered();
                self.book = Some(kept.map(|kept| *kept).unwrap_or_default());
                self.meet(now, wall_ms);
                let waiting = std::mem::take(&mut self.waiting);
                waiting.into_iter().flat_map(|purge| self.counted(purge)).collect()
            }
            Event::ReadFailed(why) => {
                self.read.failed(retry::SERVICE.from(now, "read bill"), why);
                Vec::new()
            }
            Event::Counted(purge, wall_ms) => {
                self.meet(now, wall_ms);
                self.counted(purge)
            }
            Event::Stored => {
                self.store.answered();
                Vec::new()
            }
            Event::StoreFailed(why) => {
                self.is_unstored = true;
                self.store.failed(retry::SERVICE.from(now, "store bill"), why);
                Vec::new()
            }
        };
        effects.extend(self.advance(now));
        effects
    }

    fn tick(&mut self, now: Timestamp) -> Vec<Effect> {
        if let (Some(book), true) = (&mut self.book, self.turns.is_some_and(|turns| turns <= now)) {
            let next = book.month.next();
            book.turn(next);
            self.meet(now, next.begins_ms());
        }
        self.advance(now)
    }

    fn next_deadline(&self) -> Option<Timestamp> {
        let call =
            if self.book.is_none() { self.read.deadline() } else { self.store.deadline().filter(|_| self.is_unstored) };
        call.into_iter().chain(self.turns.filter(|_| self.book.is_some())).min()
    }
}

#[cfg(test)]
mod tests;
