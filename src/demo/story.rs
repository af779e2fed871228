//! How every story is told: its chapters one after the other, a table of what came of them, and its end.

use std::io;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::demo::narration::{LOOK_EVERY, line, say};
use crate::demo::telling::{Heading, Wishes};

/// A story whose world is up.
pub trait Story: Sized {
    /// What makes one chapter another.
    type Scene: Copy;

    /// The columns of the table that say what came of a chapter.
    const COLUMNS: &'static [&'static str];

    fn watch(&mut self) -> &mut Stopwatch;

    /// Tells a chapter that has begun, to its end.
    async fn chapter(&mut self, scene: Self::Scene) -> io::Result<Came>;

    /// A last sentence, below the table.
    fn closing(&self) -> Option<String> {
        None
    }

    /// What a person can do in a world that stays.
    fn staying(&self) -> io::Result<String>;

    fn end(self) -> io::Result<()>;
}

/// What came of a chapter.
pub struct Came {
    columns: Vec<String>,
    /// Whether that was announced, in words.
    verdict: Result<String, String>,
}

impl Came {
    /// What was announced in words.
    pub fn words(announced: &str, came: String) -> Self {
        let wrong = || Err(format!("NOT AS ANNOUNCED: {announced}"));
        let verdict = if came == announced { Ok("as announced".to_owned()) } else { wrong() };
        Self { columns: vec![came], verdict }
    }

    /// As many in each column as were announced; `whole`: the chapter came to its end, rather than being given up.
    pub fn counts(announced: usize, came: &[usize], whole: bool) -> Self {
        let right = whole && came.iter().all(|came| *came == announced);
        let verdict = if right { Ok("as announced".to_owned()) } else { Err("NOT AS ANNOUNCED".to_owned()) };
        Self { columns: came.iter().map(|came| format!("{came} of {announced}")).collect(), verdict }
    }
}

/// Tells these chapters, by their numbers. Whether all came out as announced.
pub async fn tell<S: Story>(mut story: S, scenes: &[(usize, Heading, S::Scene)], wishes: &Wishes) -> io::Result<bool> {
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    table.set_header([&["", "chapter"], S::COLUMNS, &["time", ""]].concat());
    let (mut told, mut well) = (Ok(()), true);
    for (number, Heading { title, .. }, scene) in scenes {
        say(&format!("\n{number}. {title}"))?;
        story.watch().0 = Some(Instant::now());
        let Came { columns, verdict } = match story.chapter(*scene).await {
            Ok(came) => came,
            Err(error) => {
                told = Err(error);
                break;
            }
        };
        well &= verdict.is_ok();
        let time = format!("{:.1} s", story.watch().elapsed().as_secs_f64());
        let (Ok(verdict) | Err(verdict)) = verdict;
        table.add_row([vec![number.to_string(), (*title).to_owned()], columns, vec![time, verdict]].concat());
    }
    say(&format!("\n{table}"))?;
    if let Some(closing) = story.closing() {
        say(&closing)?;
    }
    told?;
    if wishes.stay {
        say(&story.staying()?)?;
        tokio::signal::ctrl_c().await?;
    }
    story.end()?;
    Ok(well)
}

/// The time since a chapter began, beside each line that is told. Before the first one nothing is told.
#[derive(Default)]
pub struct Stopwatch(Option<Instant>);

impl Stopwatch {
    pub const fn has_begun(&self) -> bool {
        self.0.is_some()
    }

    pub fn elapsed(&self) -> Duration {
        self.0.map_or(Duration::ZERO, |began| began.elapsed())
    }

    pub fn line(&self, what: &str, text: &str) -> io::Result<()> {
        line(self.elapsed(), what, text)
    }
}

/// A story in which one thing is waited for after the other.
pub trait Waits: Story {
    /// What the controller shows of what the story is about.
    type Seen;

    /// Tells what is new. Returns what the controller shows, once it shows it.
    async fn listen(&mut self) -> io::Result<Option<Self::Seen>>;

    /// How that stands, for the error of a wait in vain.
    fn standing(seen: &Self::Seen) -> String;

    /// Waits until something is so, and tells what happens meanwhile.
    async fn until(&mut self, what: &str, is_so: impl Fn(&Self, &Self::Seen) -> bool) -> io::Result<()> {
        let deadline = Instant::now() + WAIT_MAX;
        loop {
            let seen = self.listen().await?;
            if seen.as_ref().is_some_and(|seen| is_so(self, seen)) {
                return Ok(());
            }
            if Instant::now() > deadline {
                let (waited, standing) = (WAIT_MAX.as_secs(), seen.as_ref().map(Self::standing).unwrap_or_default());
                return Err(io::Error::other(format!("waited {waited} s in vain until {what}: {standing}")));
            }
            sleep(LOOK_EVERY).await;
        }
    }

    /// Tells what happens in this time.
    async fn pause(&mut self, time: Duration) -> io::Result<()> {
        let until = Instant::now() + time;
        while Instant::now() < until {
            self.listen().await?;
            sleep(LOOK_EVERY).await;
        }
        Ok(())
    }
}

/// No wait is longer; one that is has failed.
const WAIT_MAX: Duration = Duration::from_secs(30);
