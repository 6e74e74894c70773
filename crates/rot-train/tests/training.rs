//! Training as a whole: the same bits for any number of threads, after any interruption.
#![expect(clippy::unwrap_used, reason = "what goes wrong in a test fails it")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rot_train::{DataError, Ending, Event, Model, Recipe, Session, TrainError, Trainer};

const MODELS: [&str; 2] = [
    "model.kind = \"lstm\"\nmodel.hidden = 16\nmodel.layers = 2",
    "model.kind = \"transformer\"\nmodel.layers = 1\nmodel.width = 32\nmodel.feed_forward = 32\n\
     model.placement = \"before\"\nmodel.positions = \"rotary\"\nmodel.convolution = 4\n\
     model.digit_index = 4\noptimizer.muon_rate = 0.02",
];

fn recipe(model: &str, more: &str) -> Recipe {
    let text = format!(
        "seed = 3\ndata.problems = [\"mul-2\", \"add-3\"]\ndata.balance = 0.5\ntraining.steps = 60\n\
         training.batch = 24\ntraining.candidates = 40\ntraining.schedule = \"linear\"\ntraining.stop_when_perfect = false\n\
         evaluation.every = 25\nevaluation.problems = 20\n{model}\n{more}"
    );
    Recipe::parse(&text).unwrap()
}

fn with_threads<R: Send>(threads: usize, work: impl FnOnce() -> R + Send) -> R {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(work)
}

#[test]
fn parameters_are_the_same_bits_for_any_number_of_threads() {
    for model in MODELS {
        let recipe = recipe(model, "optimizer.clip = 0.5\ntraining.average = 0.9");
        let run = |threads| {
            with_threads(threads, || {
                let mut trainer = Trainer::new(&recipe).unwrap();
                let losses: Vec<u64> =
                    (0..12).map(|_| trainer.step().unwrap().score.loss.to_bits()).collect();
                let bits = |x: &[f32]| x.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
                (losses, bits(&trainer.params), bits(trainer.best_params()))
            })
        };
        let one = run(1);
        assert!(one == run(2) && one == run(3), "{model}");
        assert_ne!(one.1, one.2, "the average is something of its own");
    }
}

#[test]
fn a_model_learns() {
    for model in MODELS {
        let mut recipe = recipe(model, "");
        recipe.data.problems.truncate(1);
        recipe.optimizer.rate = 1e-2;
        let mut trainer = Trainer::new(&recipe).unwrap();
        let mut mean = || {
            let steps: Vec<f64> = (0..20)
                .map(|_| {
                    let score = trainer.step().unwrap().score;
                    score.loss / score.supervised as f64
                })
                .collect();
            steps.iter().sum::<f64>() / 20.0
        };
        let (first, _, last) = (mean(), mean(), mean());
        assert!(last < 0.85 * first, "{model}: {first} then {last}");
    }
}

/// All files of a run that do not depend on the clock.
fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for name in ["metrics.csv", "recipe.toml", "vocabulary.txt", "best.safetensors"] {
        found.insert(name.to_owned(), fs::read(dir.join(name)).unwrap());
    }
    for entry in fs::read_dir(dir.join("checkpoints")).unwrap() {
        let path = entry.unwrap().path();
        found.insert(
            path.file_name().unwrap().to_string_lossy().into_owned(),
            fs::read(path).unwrap(),
        );
    }
    found
}

#[test]
fn a_run_that_is_interrupted_in_steps_and_tests_ends_as_one_that_is_not() {
    let never = AtomicBool::new(false);
    for model in MODELS {
        let recipe = recipe(model, "training.average = 0.9\ntraining.checkpoint_every = 20");
        let [whole, parts] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let mut session = Session::create(whole.path(), &recipe).unwrap();
        assert_eq!(session.run(&never, |_, _| (), |_| ()).unwrap(), Ending::Finished);
        drop(session);

        let mut session = Session::create(parts.path(), &recipe).unwrap();
        // After 25 steps and after the last there are tests.
        for stop_at in [7, 25, 33, 60] {
            let stop = AtomicBool::new(false);
            let watch = |session: &Session, event: Event<'_>| {
                let is_due = match event {
                    Event::Step(_) => [7, 33].contains(&stop_at),
                    Event::Testing => [25, 60].contains(&stop_at),
                    Event::Result(..) => false,
                };
                if is_due && session.step() == stop_at {
                    stop.store(true, Ordering::Relaxed);
                }
            };
            let ending = session.run(&stop, watch, |_| ());
            assert_eq!((ending.unwrap(), session.step()), (Ending::Interrupted, stop_at));
            drop(session);
            session = Session::resume(parts.path()).unwrap().0;
            assert_eq!(session.step(), stop_at);
        }
        session.run(&never, |_, _| (), |_| ()).unwrap();
        drop(session);
        let (whole, parts) = (files(whole.path()), files(parts.path()));
        // Interruptions leave checkpoints of their own, in place of older ones.
        let kept: Vec<&String> = whole.keys().filter(|name| parts.contains_key(*name)).collect();
        assert_eq!(kept.len(), 6, "{kept:?}");
        for name in kept {
            assert!(parts[name] == whole[name], "{name} differs");
        }
    }
}

#[test]
fn a_run_ends_when_it_is_perfect_and_stays_ended() {
    let dir = tempfile::tempdir().unwrap();
    let text = "data.problems = [\"add-1\"]\ndata.paradigm = \"wt\"\nmodel.kind = \"transformer\"\n\
                model.layers = 1\nmodel.width = 32\nmodel.placement = \"before\"\noptimizer.rate = 1e-2\n\
                training.steps = 5000\ntraining.batch = 64\nevaluation.every = 50";
    let mut session = Session::create(dir.path(), &Recipe::parse(text).unwrap()).unwrap();
    let never = AtomicBool::new(false);
    assert_eq!(session.run(&never, |_, _| (), |_| ()).unwrap(), Ending::Perfect);
    let step = session.step();
    assert!(step < 5000 && step.is_multiple_of(50), "{step}");
    drop(session);
    let mut session = Session::resume(dir.path()).unwrap().0;
    let mut tests = 0;
    let watch =
        |_: &Session, event: Event<'_>| tests += usize::from(matches!(event, Event::Result(..)));
    assert_eq!(session.run(&never, watch, |_| ()).unwrap(), Ending::Perfect);
    assert_eq!((session.step(), tests), (step, 1));
}

#[test]
fn weights_are_found_again() {
    let dir = tempfile::tempdir().unwrap();
    let mut session = Session::create(dir.path(), &recipe(MODELS[1], "")).unwrap();
    session.run(&AtomicBool::new(false), |_, _| (), |_| ()).unwrap();
    let model = session.trainer().model();
    drop(session);
    let checkpoint = dir.path().join("checkpoints/step-00000060.safetensors");
    let opened = Model::open(&checkpoint).unwrap();
    assert_eq!(opened.params, model.params);
    assert_eq!((opened.vocabulary, &opened.recipe), (model.vocabulary, &model.recipe));
    assert!(Model::open(dir.path()).is_ok());
    let error = Model::open(&dir.path().join("recipe.toml")).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("recipe.toml"), "{error}");
}

#[test]
fn a_run_goes_on_from_weights_and_keeps_their_recipe() {
    let dir = tempfile::tempdir().unwrap();
    let [first, second] = ["first", "second"].map(|name| dir.path().join(name));
    let never = AtomicBool::new(false);
    let earlier = recipe(MODELS[1], "training.average = 0.9");
    Session::create(&first, &earlier).unwrap().run(&never, |_, _| (), |_| ()).unwrap();
    let begun = Model::open(&first).unwrap();

    let start = format!("[start]\nweights = '{}'", first.display());
    let later = Recipe { seed: 4, ..recipe(MODELS[1], &start) };
    let session = Session::create(&second, &later).unwrap();
    assert_eq!((session.step(), &session.trainer().params), (0, &begun.params));
    drop(session);
    // From here on the run needs nothing but its folder.
    fs::remove_dir_all(&first).unwrap();
    let (mut session, damaged) = Session::resume(&second).unwrap();
    assert!(damaged.is_empty() && session.trainer().params == begun.params);
    session.run(&never, |_, _| (), |_| ()).unwrap();
    drop(session);
    let made = Model::open(&second).unwrap();
    assert_ne!(made.params, begun.params);
    let start = made.recipe.start.as_ref().unwrap();
    assert_eq!(start.recipe.as_deref(), Some(&earlier));
    assert_eq!(Recipe::parse(&made.recipe.to_toml()).unwrap(), made.recipe);

    for (change, part) in [
        ("model = { kind = \"transformer\", heads = 8 }", "other settings in [model]"),
        ("data.problems = [\"div-2\"]", "the problems need"),
    ] {
        let third = dir.path().join("third");
        let mut other = later.clone();
        let changed = Recipe::parse(change).unwrap();
        match changed.data.problems.is_empty() {
            true => other.model = changed.model,
            false => other.data.problems = changed.data.problems,
        }
        other.start.as_mut().unwrap().weights = second.clone();
        let error = Session::create(&third, &other).map(|_| ()).unwrap_err();
        let TrainError::Recipe { source, .. } = &error else { panic!("{error}") };
        assert!(source.to_string().contains(part), "{source}");
        assert!(!third.exists());
    }
}

#[test]
fn a_loss_that_is_not_finite_ends_the_run_and_keeps_the_checkpoint() {
    let dir = tempfile::tempdir().unwrap();
    let recipe = recipe(MODELS[0], "training.checkpoint_every = 5\noptimizer.rate = 1e37");
    let mut session = Session::create(dir.path(), &recipe).unwrap();
    let error = session.run(&AtomicBool::new(false), |_, _| (), |_| ()).unwrap_err();
    let TrainError::NotFinite { step, setting, line, .. } = &error else { panic!("{error}") };
    assert!(*step < 60 && setting.contains("rate = "), "{error}");
    let text = fs::read_to_string(dir.path().join("recipe.toml")).unwrap();
    assert!(text.lines().nth(line - 1).unwrap().starts_with("rate = "), "{error}");
    assert!(session.trainer().params.iter().all(|p| p.is_finite()));
}

#[test]
fn contexts_that_do_not_fit_are_refused_before_anything_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("run");
    let text = "data.problems = [\"mul-8\"]\ndata.paradigm = \"cot\"";
    let error = Session::create(&out, &Recipe::parse(text).unwrap()).map(|_| ()).unwrap_err();
    assert!(matches!(error, TrainError::Data(DataError::TooLong { limit: 2048, .. })), "{error}");
    assert!(error.to_string().contains("cot context of mul-8 needs"), "{error}");
    assert!(!out.exists());
}

#[test]
fn the_recipes_of_the_project_can_be_followed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../recipes");
    for (name, rate) in [
        ("paper/transformer", 1e-3),
        ("paper/lstm", 1e-3),
        ("fast/transformer", 2e-3),
        ("fast/llama", 2e-3),
        ("fast/lstm", 2e-3),
    ] {
        let text = fs::read_to_string(root.join(format!("{name}.toml"))).unwrap();
        let mut recipe = Recipe::parse(&text).unwrap();
        assert_eq!(recipe.optimizer.rate, rate, "{name}");
        assert!(recipe.check().unwrap_err().to_string().contains("problems is empty"));
        recipe.data.problems = Recipe::parse("data.problems = [\"mul-4\"]").unwrap().data.problems;
        let trainer = Trainer::new(&recipe).unwrap();
        assert!(trainer.network().layout().len() < 700_000, "{name}");
        // What is written with every setting is read as the same recipe.
        assert_eq!(Recipe::parse(&recipe.to_toml()).unwrap(), recipe);
    }
}

#[test]
fn what_is_wrong_in_a_recipe_is_named() {
    for (text, part) in [
        ("data.problems = [\"mul\"]", "such as mul-4"),
        ("data.problems = [\"mul-x\"]", "'mul-x' is not a problem"),
        ("data.paradigm = \"tot\"", "none of rot, cot, wt"),
        ("training.setps = 3", "unknown field `setps`"),
        ("model.kind = \"gru\"", "gru"),
        ("model.kind = \"lstm\"\nmodel.heads = 3", "heads"),
        ("steps", "expected"),
    ] {
        let error = Recipe::parse(text).unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
    for (text, part) in [
        ("training.batch = 0", "batch"),
        ("data.balance = 1.5", "balance"),
        ("data.contexts_per_problem = 257", "contexts_per_problem"),
        ("training.candidates = 255", "candidates"),
        ("training.hold = 1.0", "hold"),
        ("optimizer.rate = nan", "rate"),
        ("optimizer.beta2 = 1.0", "beta"),
        ("evaluation.every = 0", "every"),
        ("seed = 9223372036854775807", ""),
    ] {
        let text = format!("data.problems = [\"mul-4\"]\n{text}");
        let recipe = Recipe::parse(&text).unwrap();
        if part.is_empty() {
            assert!(recipe.check().is_ok());
        } else {
            let error = recipe.check().unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
