//! What a release is made by: the workflows, the compiler's script of the image, and the list of what is in the binary.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::none;
use crate::render::{documents, text, top};

const WORKFLOWS: [&str; 2] = [".github/workflows/ci.yml", ".github/workflows/release.yml"];

fn workflow(path: &str) -> Value {
    documents(&text(path)).remove(0)
}

/// Each step of each job.
fn steps(path: &str) -> Vec<Value> {
    let workflow = workflow(path);
    let jobs = workflow["jobs"].as_object().unwrap();
    jobs.values().flat_map(|job| job["steps"].as_array().unwrap().clone()).collect()
}

/// A tag of an action can be moved to other code, a commit cannot.
#[test]
fn every_action_is_pinned_by_its_commit() {
    let mut loose = Vec::new();
    let mut count = 0;
    for path in WORKFLOWS {
        for line in text(path).lines().filter_map(|line| line.trim().trim_start_matches("- ").strip_prefix("uses: ")) {
            count += 1;
            let (action, version) = line.split_once(" # v").unwrap_or((line, ""));
            let commit = action.split_once('@').map_or("", |(_, commit)| commit);
            let is_commit = commit.len() == 40 && commit.chars().all(|c| c.is_ascii_hexdigit());
            if !is_commit || version.is_empty() {
                loose.push(format!("{path}: {line}"));
            }
        }
    }
    assert!(count >= 10, "{count}");
    none("an action that is not pinned, or whose version is not said", &loose);
}

/// One version of an action in all workflows: a renewed one is renewed everywhere.
#[test]
fn an_action_has_one_version() {
    let uses =
        WORKFLOWS.iter().flat_map(|path| steps(path)).filter_map(|step| step["uses"].as_str().map(str::to_owned));
    let all: BTreeSet<String> = uses.collect();
    let names: BTreeSet<&str> = all.iter().map(|one| one.split('@').next().unwrap()).collect();
    assert_eq!(names.len(), all.len(), "{all:?}");
}

#[test]
fn workflows_may_read_alone_unless_a_job_says_why_not() {
    for path in WORKFLOWS {
        let workflow = workflow(path);
        assert_eq!(workflow["permissions"], json!({"contents": "read"}), "{path}");
        for (name, job) in workflow["jobs"].as_object().unwrap() {
            assert!(job["permissions"].is_null() || name == "release", "{path}: {name}");
            assert!(job["timeout-minutes"].is_u64(), "{path}: {name} may run for hours");
        }
        // What a pull request is called must not become a command.
        let runs = steps(path).into_iter().filter_map(|step| step["run"].as_str().map(str::to_owned));
        let mixed: Vec<String> = runs.filter(|run| run.contains("${{")).collect();
        none("a command with an expression in it", &mixed);
        for step in steps(path)
            .iter()
            .filter(|step| step["uses"].as_str().is_some_and(|it| it.starts_with("actions/checkout@")))
        {
            assert_eq!(step["with"]["persist-credentials"], json!(false), "{path}");
        }
    }
}

/// CI does what people do.
#[test]
fn workflows_call_targets_and_scripts_that_exist() {
    let makefile = text("Makefile");
    let mut missing = Vec::new();
    let mut called = BTreeSet::new();
    for path in WORKFLOWS {
        for run in steps(path).iter().filter_map(|step| step["run"].as_str()) {
            let commands = run.lines().flat_map(|line| line.split("&&")).map(str::trim);
            for target in commands.clone().filter_map(|command| command.strip_prefix("make ")) {
                called.insert(target.to_owned());
                if !makefile.contains(&format!("\n{target}: ")) {
                    missing.push(format!("{path}: make {target}"));
                }
            }
            for script in commands.filter(|command| command.starts_with(".ci/")) {
                called.insert(script.to_owned());
                if !top().join(script).exists() {
                    missing.push(format!("{path}: {script}"));
                }
            }
        }
        let cargo: toml::Table = text("Cargo.toml").parse().unwrap();
        assert_eq!(workflow(path)["env"]["RUST"].as_str(), cargo["workspace"]["package"]["rust-version"].as_str());
    }
    none("a workflow calls what is not there", &missing);
    assert!(["chart", "sbom", ".ci/run"].iter().all(|wanted| called.contains(*wanted)), "{called:?}");
}

/// A copy of what `scripts/prepare-release.py` writes into, with the script.
fn tree() -> tempfile::TempDir {
    let tree = tempfile::tempdir().unwrap();
    for path in [
        "scripts/prepare-release.py",
        "CHANGELOG.md",
        "Cargo.toml",
        "deploy/Dockerfile",
        "deploy/base/kustomization.yaml",
        "deploy/chart/allclear/Chart.yaml",
        "deploy/chart/allclear/values.yaml",
        "deploy/chart/allclear/README.md",
    ] {
        let to = tree.path().join(path);
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::copy(top().join(path), to).unwrap();
    }
    tree
}

/// What the release's first step, run by bash as a runner does, says of a tree and a tag.
fn judged(tree: &Path, tag: &str) -> Result<String, String> {
    let names = steps(".github/workflows/release.yml").into_iter().find(|step| step["id"] == "names").unwrap();
    let output = Command::new("bash")
        .args(["-e", "-o", "pipefail", "-c", names["run"].as_str().unwrap()])
        .current_dir(tree)
        .env("GITHUB_REF_NAME", tag)
        .env("GITHUB_SERVER_URL", "https://github.com")
        .env("GITHUB_REPOSITORY", "Example/allclear")
        .env("GITHUB_REPOSITORY_OWNER", "Example")
        .env("GITHUB_OUTPUT", tree.join("output"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() { Ok(std::fs::read_to_string(tree.join("output")).unwrap()) } else { Err(said) }
}

/// The script and the workflow know the same places; the tree as it is, is no release.
#[test]
fn a_release_is_prepared_by_one_command_and_nothing_less_passes() {
    let tree = tree();
    let tag = concat!("v", env!("CARGO_PKG_VERSION"));
    assert!(judged(tree.path(), tag).is_err(), "this tree names no place and no date");
    let prepare = |version: &str, repository: &str| {
        let script = tree.path().join("scripts/prepare-release.py");
        Command::new(top().join(".venv/bin/python")).arg(script).args([version, repository]).output().unwrap()
    };
    for (version, repository) in [("1", "Example/allclear"), ("0.3.0", "https://github.com/Example/allclear")] {
        assert!(!prepare(version, repository).status.success(), "{version} {repository}");
    }
    let said = prepare("0.3.0", "Example/allclear");
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    let names = judged(tree.path(), "v0.3.0").unwrap();
    assert_eq!(names, "version=0.3.0\nimage=ghcr.io/example/allclear\nowner=example\n");
    assert!(judged(tree.path(), "v0.3.1").is_err());
    let read = |path: &str| std::fs::read_to_string(tree.path().join(path)).unwrap();
    assert!(!read("deploy/chart/allclear/values.yaml").contains("There is none yet"));
    let chart = &documents(&read("deploy/chart/allclear/Chart.yaml"))[0];
    assert_eq!(chart["sources"], json!(["https://github.com/Example/allclear"]));
    let cargo: toml::Table = read("Cargo.toml").parse().unwrap();
    assert_eq!(cargo["package"]["repository"]["workspace"].as_bool(), Some(true));
    // The next one begins from this one.
    assert!(prepare("0.4.0", "Example/allclear").status.success());
    assert!(judged(tree.path(), "v0.4.0").is_ok());
    assert_eq!(read("CHANGELOG.md").matches("\n## [Unreleased]\n").count(), 1);
    assert_eq!(read("Cargo.toml").matches("repository = ").count(), 1);
}

/// The image and its release start from the same bases.
#[test]
fn the_release_pins_the_bases_that_the_dockerfile_names() {
    let release = workflow(".github/workflows/release.yml");
    let dockerfile = text("deploy/Dockerfile");
    for base in ["BUILD_BASE", "RUN_BASE", "SSH_BASE"] {
        let name = release["env"][base].as_str().unwrap();
        assert!(dockerfile.contains(&format!("\nARG {base}={name}\n")), "{base}: {name}");
    }
    let rust = workflow(".github/workflows/ci.yml");
    assert!(dockerfile.contains(&format!("rust:{}-slim", rust["env"]["RUST"].as_str().unwrap())));
}

#[test]
fn the_image_is_compiled_for_both_architectures_and_no_other() {
    let target = |architecture: &str| {
        let script =
            Command::new(top().join("deploy/image/compile.sh")).arg("target").env("TARGETARCH", architecture).output();
        let output = script.unwrap();
        (
            output.status.success(),
            String::from_utf8(output.stdout).unwrap().split(' ').next().unwrap().trim().to_owned(),
        )
    };
    assert_eq!(target("amd64"), (true, "x86_64-unknown-linux-gnu".to_owned()));
    assert_eq!(target("arm64"), (true, "aarch64-unknown-linux-gnu".to_owned()));
    assert!(!target("s390x").0);
}

/// The build's context, by the lines of `.dockerignore`, which lets in whole folders and files alone.
fn context() -> tempfile::TempDir {
    let context = tempfile::tempdir().unwrap();
    let lines = text(".dockerignore");
    let mut rules = lines.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    assert_eq!(rules.next(), Some("*"), "all else is left out");
    for rule in rules {
        let path = rule.strip_prefix('!').unwrap_or_else(|| panic!("{rule}: this test knows no such rule"));
        let to = context.path().join(path);
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        let copied = Command::new("cp").arg("-r").arg(top().join(path)).arg(&to).status().unwrap();
        assert!(copied.success(), "{path} is not there");
    }
    context
}

/// The part of a source that the image compiles.
fn shipped(source: &str) -> &str {
    source.split("\n#[cfg(test)]").next().unwrap_or(source)
}

/// cargo reads the manifests of all members, and the program holds files of other folders.
#[test]
fn the_context_of_the_image_has_all_that_its_build_reads() {
    let context = context();
    assert!(context.path().join("deploy/image/compile.sh").exists() && context.path().join("scripts/sbom.py").exists());
    let read = Command::new("cargo")
        .args(["metadata", "--locked", "--offline", "--no-deps", "--format-version", "1"])
        .current_dir(context.path())
        .output()
        .unwrap();
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
    let mut missing = Vec::new();
    let mut count = 0;
    let mut folders = vec![top().join("src")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                folders.push(entry);
                continue;
            }
            let is_test = entry.components().any(|part| part.as_os_str().to_string_lossy().starts_with("tests"));
            if is_test || entry.extension().is_none_or(|extension| extension != "rs") {
                continue;
            }
            let source = std::fs::read_to_string(&entry).unwrap();
            for file in shipped(&source).split("include_str!(\"").skip(1).filter_map(|rest| rest.split('"').next()) {
                count += 1;
                let place = folder.join(file).canonicalize().unwrap();
                let within = place.strip_prefix(top().canonicalize().unwrap()).unwrap();
                if !context.path().join(within).exists() {
                    missing.push(format!("{}: {}", entry.display(), within.display()));
                }
            }
        }
    }
    assert!(count >= 5, "{count}");
    none("the image's context lacks a file of the program", &missing);
}

/// What is linked, with its licence and checksum; no stand-in of the demo and nothing that only the compiler runs.
#[test]
fn the_sbom_lists_what_is_linked_and_no_stand_in() {
    let output = Command::new(top().join("scripts/sbom.py")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for target in ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"] {
        let path = format!("target/sbom/allclear-{target}.cdx.json");
        assert!(Path::new(&top().join(&path)).exists());
        let bom: Value = serde_json::from_str(&text(&path)).unwrap();
        assert_eq!(bom["metadata"]["component"]["version"], json!(env!("CARGO_PKG_VERSION")));
        let parts = bom["components"].as_array().unwrap();
        let names: BTreeSet<&str> = parts.iter().map(|part| part["name"].as_str().unwrap()).collect();
        assert!(
            ["aws-sdk-cloudfront", "kube", "rustls", "aws-lc-sys", "allclear-purge"]
                .iter()
                .all(|one| names.contains(one))
        );
        for absent in ["allclear-sandbox", "allclear-support", "syn", "serde_derive", "proptest", "stateright"] {
            assert!(!names.contains(absent), "{target}: {absent}");
        }
        let silent: Vec<String> = parts
            .iter()
            .filter(|part| {
                part["licenses"].is_null()
                    || !part["name"].as_str().unwrap().starts_with("allclear-") && part["hashes"].is_null()
            })
            .map(|part| format!("{target}: {}", part["name"]))
            .collect();
        none("a crate without a licence or a checksum", &silent);
    }
    let licences = text("target/sbom/THIRD-PARTY-LICENSES");
    for words in [
        "\nrustls 0.",
        "\naws-lc-sys 0.",
        "Permission is hereby granted, free of charge",
        "TERMS AND CONDITIONS FOR USE",
    ] {
        assert!(licences.contains(words), "{words:?} is not among the licences");
    }
    assert!(!licences.contains("\nallclear"), "our own licence is a file beside it");
}
