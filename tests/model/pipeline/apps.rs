//! The apps of each environment: one, or two that move as one. What an environment runs is a number, with a digit for each of two.

use kernel::id::Revision;
use objects::apps::app::{AppKind, ClusterKey, TargetKey};

use super::world::{NAMES, World};

/// The apps of a set; one that is alone is the second.
const APPS: [&str; 2] = ["api", "web"];

impl World {
    /// Whether two apps move as one.
    pub fn is_set(&self) -> bool {
        self.head[0] >= 10
    }

    pub fn apps(&self) -> &'static [&'static str] {
        if self.is_set() { &APPS } else { &APPS[1..] }
    }

    /// A number has a digit for each app.
    pub fn revision(&self, number: u8) -> Revision {
        let [first, second] = APPS;
        let set = || format!("{first}={},{second}={}", number / 10, number % 10);
        Revision(if self.is_set() { set() } else { number.to_string() })
    }

    /// The apps of an environment.
    pub fn targets(&self, env: usize) -> Vec<TargetKey> {
        let target =
            |app: &&str| TargetKey::new(ClusterKey::Here, AppKind::new("apps/v1", "Deployment"), NAMES[env], *app);
        self.apps().iter().map(target).collect()
    }

    /// The app with this name, as a number.
    pub fn part(&self, target: &TargetKey) -> usize {
        self.apps().iter().position(|app| *app == target.name).unwrap()
    }

    /// The apps, as numbers.
    pub fn parts(&self) -> std::ops::Range<usize> {
        0..self.apps().len()
    }

    /// What one app has of what an environment runs; 0 if that is not known.
    pub fn digit(&self, number: u8, part: usize) -> u8 {
        match (self.is_set(), part) {
            (false, _) => number,
            (true, 0) => number / 10,
            (true, _) => number % 10,
        }
    }

    /// The same, where one app has gone over to what it has in another.
    pub fn gone_over(&self, number: u8, part: usize, to: u8) -> u8 {
        match (self.is_set(), part) {
            (false, _) => to,
            (true, 0) => self.digit(to, 0) * 10 + self.digit(number, 1),
            (true, _) => self.digit(number, 0) * 10 + self.digit(to, 1),
        }
    }
}
