use super::*;
use crate::UNSUPERVISED;
use crate::kernels::testing::{assert_close, assert_gradient, noise};

const VOCABULARY: usize = 5;

fn tiny() -> Lstm {
    Lstm::new(&LstmConfig { embedding: 3, hidden: 6, layers: 3, limit: 16, memory: 4 }, VOCABULARY)
        .unwrap()
}

/// Ids with targets, of every length that could go wrong.
fn sequences() -> Vec<(Vec<u8>, Vec<u8>)> {
    [1, 4, 2, 7, 1, 4]
        .into_iter()
        .enumerate()
        .map(|(i, len)| {
            let ids: Vec<u8> = (0..len).map(|t| ((3 * i + t * t) % VOCABULARY) as u8).collect();
            let targets = (0..len).map(|t| match (i + t) % 4 {
                3 => UNSUPERVISED,
                id => id as u8 + 1,
            });
            (ids, targets.collect())
        })
        .collect()
}

fn pack<'a>(sequences: impl IntoIterator<Item = &'a (Vec<u8>, Vec<u8>)>) -> Packed {
    let mut batch = Packed::default();
    for (ids, targets) in sequences {
        batch.push(ids, targets);
    }
    batch
}

fn logits(lstm: &Lstm, params: &[f32], batch: &Packed) -> Vec<f32> {
    let decoder = lstm.decoder(params);
    crate::read_afresh(decoder.as_ref(), &batch.asking_all(), &mut Workspace::default())
}

/// The logits of a sequence, token by token, from the definition.
fn slow(lstm: &Lstm, params: &[f32], ids: &[u8]) -> Vec<f64> {
    let times = |weight: &Range<usize>, x: &[f64]| -> Vec<f64> {
        let dot = |row: &[f32]| row.iter().zip(x).map(|(&w, x)| f64::from(w) * x).sum();
        params[weight.clone()].chunks(x.len()).map(dot).collect()
    };
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    let (h, width) = (lstm.config.hidden, lstm.config.embedding);
    let mut states = vec![(vec![0.0; VOCABULARY], vec![0.0; h]); lstm.layers.len()];
    let mut logits = vec![];
    for &id in ids {
        let embedding = &params[lstm.embedding.clone()][usize::from(id) * width..][..width];
        let mut x: Vec<f64> = embedding.iter().map(|&x| f64::from(x)).collect();
        for (layer, (state, cells)) in lstm.layers.iter().zip(&mut states) {
            let (ih, hh) = (times(&layer.weight_ih, &x), times(&layer.weight_hh, state));
            let bias = |k: usize| {
                let [ih, hh] = [&layer.bias_ih, &layer.bias_hh].map(|b| params[b.start + k]);
                f64::from(ih) + f64::from(hh)
            };
            let gate = |k: usize| ih[k] + hh[k] + bias(k);
            let mut hidden = vec![];
            for (u, cell) in cells.iter_mut().enumerate() {
                let kept = sigmoid(gate(h + u)) * *cell;
                *cell = kept + sigmoid(gate(u)) * gate(2 * h + u).tanh();
                hidden.push(sigmoid(gate(3 * h + u)) * cell.tanh());
            }
            *state = times(&layer.weight_hr, &hidden);
            x.clone_from(state);
        }
        logits.extend(x);
    }
    logits
}

#[test]
fn the_papers_size() {
    let lstm = Lstm::new(&LstmConfig::default(), 24).unwrap();
    assert_eq!(lstm.layout().len(), 271_872);
    assert_eq!(lstm.limit(), 512);
    let mut batch = Packed::default();
    batch.push(&[1, 2], &[2, 3]);
    assert_eq!(lstm.flops(&batch), 2 * 2 * 262_144);
    let names: Vec<_> = lstm.layout().tensors()[..6].iter().map(|t| t.name.as_str()).collect();
    let layer = ["weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr"];
    assert_eq!(names[0], "embedding.weight");
    assert_eq!(names[1..], layer.map(|part| format!("lstm.{part}_l0")));
}

#[test]
fn logits_match_the_slow_twin() {
    let (lstm, sequences) = (tiny(), sequences());
    let params = lstm.layout().initial(1);
    let expected: Vec<f32> =
        sequences.iter().flat_map(|(ids, _)| slow(&lstm, &params, ids)).map(|x| x as f32).collect();
    assert_close(&logits(&lstm, &params, &pack(&sequences)), &expected, 1e-5);
}

#[test]
fn gradients_match_finite_differences() {
    let (lstm, sequences) = (tiny(), sequences());
    let params = lstm.layout().initial(2);
    let loss = |params: &[f32]| -> f64 {
        let mut loss = 0.0;
        for (ids, targets) in &sequences {
            let logits = slow(&lstm, params, ids);
            for (row, &target) in logits.chunks(VOCABULARY).zip(targets) {
                if target != UNSUPERVISED {
                    let total: f64 = row.iter().map(|x| x.exp()).sum();
                    loss += total.ln() - row[usize::from(target)];
                }
            }
        }
        loss
    };
    // Gradients are added, and memory from another batch does not matter.
    let (mut work, mut grads) = (Workspace::default(), noise(params.len(), 3));
    let before = grads.clone();
    lstm.learn(&params, &pack(&sequences[..2]), 0.0, &mut grads, &mut work);
    assert_eq!(grads, before);
    let score = lstm.learn(&params, &pack(&sequences), 0.5, &mut grads, &mut work);
    assert!((score.loss - loss(&params)).abs() < 1e-4);
    for (grad, before) in grads.iter_mut().zip(&before) {
        *grad -= before;
    }
    for tensor in lstm.layout().tensors() {
        let part = |x: &[f32]| x[tensor.range.clone()].to_vec();
        assert_gradient(&part(&params), &part(&grads), |part| {
            let mut params = params.clone();
            params[tensor.range.clone()].copy_from_slice(part);
            0.5 * loss(&params)
        });
    }
}

#[test]
fn a_sequence_read_alone_or_in_parts_gives_the_same_bits() {
    let (lstm, batch) = (tiny(), pack(&sequences()));
    let params = lstm.layout().initial(4);
    let all = logits(&lstm, &params, &batch);
    crate::testing::assert_same_in_parts(lstm.decoder(&params).as_ref(), &batch, &all, "LSTM");
}

#[test]
fn a_batch_of_nothing() {
    let lstm = tiny();
    let params = lstm.layout().initial(5);
    let (mut grads, mut work) = (vec![0.0; params.len()], Workspace::default());
    let batch = Packed::default();
    assert!(logits(&lstm, &params, &batch).is_empty());
    assert_eq!(lstm.learn(&params, &batch, 1.0, &mut grads, &mut work), Score::default());
    assert!(grads.iter().all(|&grad| grad == 0.0));
}

#[test]
fn a_config_says_only_what_differs() {
    let config: LstmConfig = serde_json::from_str(r#"{"hidden": 32}"#).unwrap();
    assert_eq!(config, LstmConfig { hidden: 32, ..LstmConfig::default() });
    assert!(serde_json::from_str::<LstmConfig>(r#"{"hiden": 32}"#).is_err());
}
