//! What people say to a Pipeline: yes to what it asks, and a revision of their own choice.

use objects::pipeline::choosing::{choosing, nothing_untaken};

use super::action::Action;
use super::world::{State, World, environment};

impl State {
    /// A person answers, or somebody puts an earlier answer there again.
    pub fn answered(&mut self, world: &World, action: Action) {
        match action {
            Action::Yes(env) => {
                self.left.yes -= 1;
                let ticket = self.question(env).unwrap();
                self.past.answered.push(ticket.clone());
                self.say(ticket);
            }
            Action::Choose(env, runs) => {
                self.left.choices -= 1;
                let (ticket, written) = self.choice(world, env, runs).unwrap();
                self.past.answered.push(ticket.clone());
                self.past.wish(env, runs, &ticket, &written);
                self.object.answers.promote = Some(written);
                self.say(ticket);
            }
            Action::Replay(answer) => {
                self.left.replays -= 1;
                let ticket = self.past.answered[answer].clone();
                let written = self.past.written(&ticket);
                self.object.answers.promote = written.or(self.object.answers.promote.take());
                self.say(ticket);
            }
            _ => unreachable!("{action:?} is no answer"),
        }
    }

    /// The ticket of a choice, and what is written with it, if it can be made.
    pub fn choice(&self, world: &World, env: usize, runs: u8) -> Option<(String, String)> {
        let choosing = choosing(&world.object(&self.object), &environment(env), &world.revision(runs)).ok()?;
        Some((choosing.ticket, choosing.written))
    }

    /// Whether a person is asked, and would wipe out no other answer.
    pub fn may_answer(&self, world: &World, env: usize) -> bool {
        self.question(env).is_some() && nothing_untaken(&world.object(&self.object), None).is_ok()
    }

    /// The ticket that a person could answer.
    pub fn question(&self, env: usize) -> Option<String> {
        let known = self.object.status.environment(&environment(env))?;
        known.waiting.as_ref().map(|waiting| waiting.ticket.clone())
    }

    fn say(&mut self, ticket: String) {
        self.past.wiped_out(&ticket);
        self.object.answers.approve = Some(ticket);
        self.object.version += 1;
        self.object.writer = None;
    }
}
