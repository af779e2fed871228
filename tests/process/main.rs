//! The real program as a process of its own, against the stand-ins: what only a process can show. It is killed, told to
//! stop, and given a world that misbehaves; every fact asserted is one that users or operators can see from the outside.

#[path = "../support/process.rs"]
mod process;

mod kills;
mod scene;
