//! What people do: to the object, and to what a plan would change.

use objects::repo::again;

use super::action::Action;
use super::world::{State, World};

impl State {
    /// Somebody touches the object, or what a plan would change.
    pub fn touch(&mut self, world: &World, action: Action) {
        match action {
            Action::Drift => {
                self.left.drifts -= 1;
                self.drift += 1;
            }
            Action::Yes => {
                self.left.yes -= 1;
                let ticket = self.question().unwrap().to_owned();
                self.past.answered.push(ticket.clone());
                self.say(ticket);
            }
            Action::Again => {
                self.left.reruns -= 1;
                let ticket = self.ticket_again().unwrap();
                self.past.answered.push(ticket.clone());
                self.say(ticket);
            }
            Action::Replay(answer) => {
                self.left.replays -= 1;
                let ticket = self.past.answered[answer].clone();
                self.say(ticket);
            }
            Action::Agree => {
                self.left.agrees -= 1;
                let ticket = self.ticket_of_lock().unwrap().to_owned();
                self.past.answered.push(ticket.clone());
                self.say(ticket);
            }
            _ => self.rearrange(world, action),
        }
    }

    /// Somebody changes the object, takes it away, or changes what is around it.
    fn rearrange(&mut self, world: &World, action: Action) {
        match action {
            Action::Turn => {
                self.left.turns -= 1;
                self.open = !self.open;
            }
            Action::Edit => {
                self.left.edits -= 1;
                self.object.edition += 1;
                self.past.owed = true;
                self.edited();
            }
            Action::Rewatch => {
                self.left.rewatches -= 1;
                self.object.watches = 1 - self.object.watches;
                self.past.owed = true;
                self.edited();
            }
            Action::Stop => {
                self.left.stops -= 1;
                self.object.stopped = true;
                self.edited();
            }
            Action::Resume => {
                self.object.stopped = false;
                self.edited();
            }
            Action::Restore => {
                self.left.restores -= 1;
                self.object.status = self.past.backup.clone().unwrap();
                self.past.restored(&self.jobs);
                self.edited();
            }
            Action::Lock => {
                self.left.locks -= 1;
                self.lock.take();
            }
            Action::GiveBack => {
                self.left.gives -= 1;
                self.lock.give_back();
            }
            Action::Refuse => {
                self.left.refusals -= 1;
                self.forge.refuses = !self.forge.refuses;
            }
            Action::Remove => {
                self.left.removals -= 1;
                self.remove(world);
            }
            Action::Keep => {
                self.left.keeps -= 1;
                self.keep();
            }
            Action::Remake => {
                self.left.remakes -= 1;
                self.remake();
            }
            _ => {}
        }
    }

    /// What a person says to have the applied commit run once more.
    pub fn ticket_again(&self) -> Option<String> {
        let status = &self.object.status;
        again(&self.object.leaving.uid(), status.run.as_ref()?, status.head.as_ref())
    }

    fn say(&mut self, ticket: String) {
        let uid = self.object.leaving.uid();
        self.past.said(&uid, &self.object.status, &ticket, self.object.edition);
        self.agree_to_unlock(&ticket);
        self.object.answers.approve = Some(ticket);
        self.edited();
    }

    pub fn edited(&mut self) {
        self.object.version += 1;
        self.object.writer = None;
    }
}
