//! Looking and fetching: what is asked for, in protocol v2 or v0, and how the pack is taken out of the answer.

use std::collections::BTreeSet;

use super::advertisement::{Advertisement, Version};
use super::exchange::Service;
use super::failure::Failure;
use super::pack::Store;
use super::packet::{Outgoing, Packet, Packets};
use super::{Objects, Oid, Refs, Remote, pack};

/// How we name ourselves.
pub(super) const AGENT: &str = concat!("agent=allclear/", env!("CARGO_PKG_VERSION"));

/// Objects that are asked for by one request: 250 KB of it.
const WANTS_MAX: usize = 5_000;

/// No history, and no files.
const TREES: &[&str] = &["deepen 1", "filter blob:none"];
const WHOLE: &[&str] = &["deepen 1"];
/// What is asked for has no history.
const FILES: &[&str] = &[];
/// A commit alone, or a folder without what is in it.
const ALONE: [&[&str]; 2] = [&["deepen 1", "filter tree:0"], &["filter tree:0"]];

impl Remote {
    /// Refs by one request where the server is known to speak v2, by two where it is not known yet.
    pub(super) async fn listed(&self, prefixes: &[&str]) -> Result<Refs, Failure> {
        let known = match self.known().filter(|known| known.version == Version::V2) {
            Some(known) => known,
            None => self.met().await?,
        };
        if known.version == Version::V0 {
            return Ok(known.refs.only(prefixes));
        }
        let body =
            Outgoing::default().line("command=ls-refs\n").line(AGENT).delimiter().line("peel\n").line("symrefs\n");
        let body = body.lines(prefixes.iter().map(|prefix| format!("ref-prefix {prefix}\n"))).flush();
        let answer = self.door.ask(Service::UploadPack, body.into_bytes(), self.bounds.refs_bytes).await;
        let refs = answer.and_then(|answer| Refs::read_v2(&answer));
        if refs.is_err() {
            self.learn(None);
        }
        Ok(refs?.only(prefixes))
    }

    /// Commits without their history, and without files where the server can leave those out.
    pub(super) async fn trees(&self, commits: &BTreeSet<Oid>) -> Result<Objects, Failure> {
        let known = self.known_or_met().await?;
        let wants: Vec<Oid> = commits.iter().copied().collect();
        let mut objects = Objects::new(self.bounds);
        let unfiltered = match known.filters {
            false => "it offers no filters (git's uploadpack.allowFilter)".to_owned(),
            true => match self.add(&known, &wants, TREES, &mut objects).await {
                Ok(()) => return Ok(objects),
                // Servers offer filters that they do not have: Gitea of 2022 answers nothing, dulwich 500.
                Err(failure) if failure.answered => failure.cause,
                Err(failure) => return Err(failure),
            },
        };
        objects = Objects::new(self.bounds);
        self.add(&known, &wants, WHOLE, &mut objects).await.map_err(|failure| {
            let cause = format!(
                "{}; all files were asked for, as the server cannot leave them out: {unfiltered}",
                failure.cause
            );
            Failure { cause, ..failure }
        })?;
        self.learn(Some(Advertisement { filters: false, ..known }));
        Ok(objects)
    }

    /// Whether the server offers to leave things out.
    pub(super) async fn filters(&self) -> Result<bool, Failure> {
        Ok(self.known_or_met().await?.filters)
    }

    /// Adds commits without any of their folders.
    pub(super) async fn commits_alone(&self, commits: &[Oid], objects: &mut Objects) -> Result<(), Failure> {
        let [alone, _] = ALONE;
        self.add(&self.known_or_met().await?, commits, alone, objects).await
    }

    /// Adds folders, by their ids, without what is in them.
    pub(super) async fn folders_alone(&self, folders: &BTreeSet<Oid>, objects: &mut Objects) -> Result<(), Failure> {
        let ([_, alone], wants) = (ALONE, folders.iter().copied().collect::<Vec<_>>());
        self.add(&self.known_or_met().await?, &wants, alone, objects).await
    }

    /// Files that are not there yet, by their ids, or where the server gives out no files by id the whole commit.
    pub(super) async fn files(&self, objects: &mut Objects, commit: Oid, files: &BTreeSet<Oid>) -> Result<(), Failure> {
        let missing: Vec<Oid> = files.iter().copied().filter(|file| objects.get(*file).is_none()).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let known = self.known_or_met().await?;
        for wants in missing.chunks(WANTS_MAX) {
            match self.add(&known, wants, FILES, objects).await {
                Ok(()) => {}
                Err(failure) if failure.answered => return self.add(&known, &[commit], WHOLE, objects).await,
                Err(failure) => return Err(failure),
            }
        }
        Ok(())
    }

    /// A commit with so much of its history, and all files.
    pub(super) async fn whole(&self, commit: Oid, history: usize, objects: &mut dyn Store) -> Result<(), Failure> {
        let known = self.known_or_met().await?;
        self.add(&known, &[commit], &[&format!("deepen {history}")], objects).await
    }

    async fn add(
        &self,
        known: &Advertisement,
        wants: &[Oid],
        narrowing: &[&str],
        objects: &mut dyn Store,
    ) -> Result<(), Failure> {
        let body = match known.version {
            Version::V2 => asked_v2(wants, narrowing),
            Version::V0 => asked_v0(known, wants, narrowing),
        };
        let pack = {
            let answer = self.door.ask(Service::UploadPack, body, self.bounds.pack_bytes).await?;
            packed(known.version, &answer)?
        };
        pack::read(&pack, objects)?;
        match wants.iter().find(|want| !objects.has(**want)) {
            Some(missing) => Err(Failure::answer(format!("the server did not send {missing}"))),
            None => Ok(()),
        }
    }

    async fn known_or_met(&self) -> Result<Advertisement, Failure> {
        match self.known() {
            Some(known) => Ok(known),
            None => self.met().await,
        }
    }

    /// Asks the server what it can do, and remembers it without the refs, which change.
    async fn met(&self) -> Result<Advertisement, Failure> {
        let answer = self.door.advertisement(Service::UploadPack, self.bounds.refs_bytes).await?;
        let met = Advertisement::read(&answer)?;
        self.learn(Some(Advertisement { refs: Refs::default(), ..met.clone() }));
        Ok(met)
    }
}

fn asked_v2(wants: &[Oid], narrowing: &[&str]) -> Vec<u8> {
    let body =
        Outgoing::default().line("command=fetch\n").line(AGENT).delimiter().line("ofs-delta\n").line("no-progress\n");
    let body = body.lines(wants.iter().map(|want| format!("want {want}\n")));
    body.lines(narrowing.iter().map(|line| format!("{line}\n"))).line("done\n").flush().into_bytes()
}

/// The first line names what we can do too. Azure DevOps refuses clients without `multi_ack_detailed`, dulwich those without
/// `thin-pack` and those that name what it did not offer. Neither changes anything: we have nothing that a pack could be thin for.
fn asked_v0(known: &Advertisement, wants: &[Oid], narrowing: &[&str]) -> Vec<u8> {
    let ours = ["multi_ack_detailed", "side-band-64k", "thin-pack", "ofs-delta", "no-progress", "filter"];
    let ours: Vec<&str> = ours.into_iter().filter(|capability| known.has(capability)).chain([AGENT]).collect();
    let lines = wants.iter().zip(std::iter::once(ours.join(" ")).chain(std::iter::repeat(String::new())));
    let body =
        Outgoing::default().lines(lines.map(|(want, ours)| format!("want {want} {ours}").trim_end().to_owned() + "\n"));
    body.lines(narrowing.iter().map(|line| format!("{line}\n"))).flush().line("done\n").into_bytes()
}

/// The pack in an answer: behind the line `packfile` in v2, behind the last acknowledgement in v0.
fn packed(version: Version, answer: &[u8]) -> Result<Vec<u8>, Failure> {
    let begin: &[u8] = match version {
        Version::V2 => b"packfile",
        Version::V0 => b"NAK",
    };
    let mut packets = Packets::new(answer);
    while let Some(packet) = packets.next() {
        if let Packet::Data(line) = packet?
            && line.strip_suffix(b"\n").unwrap_or(line) == begin
        {
            return Ok(packets.bands()?.data);
        }
    }
    Err(Failure::answer("there is no pack in the answer"))
}
