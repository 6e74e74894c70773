use super::*;
use crate::UNSUPERVISED;
use crate::kernels::norm::Norm;
use crate::kernels::testing::noise;

const VOCABULARY: usize = 6;

/// The first id is a border, digits are the ids from 3.
const ROLES: [Role; VOCABULARY] =
    [Role::Border, Role::Other, Role::Other, Role::Digit, Role::Digit, Role::Digit];

fn model(change: impl FnOnce(&mut TransformerConfig)) -> Transformer {
    let mut config = TransformerConfig {
        layers: 2,
        width: 32,
        heads: 2,
        feed_forward: 24,
        limit: 16,
        ..TransformerConfig::default()
    };
    change(&mut config);
    Transformer::new(&config, &ROLES).unwrap()
}

fn batch() -> Packed {
    let mut batch = Packed::default();
    batch.push(&[1, 3, 4, 2, 5], &[UNSUPERVISED, 4, 2, 5, 0]);
    batch.push(&[5], &[2]);
    batch.push(&[0, 3, 1, 4, 0, 5], &[3, UNSUPERVISED, 2, 5, UNSUPERVISED, 1]);
    batch
}

/// Every setting that changes what is computed, one at a time and together.
fn models() -> Vec<(&'static str, Transformer)> {
    vec![
        ("paper", model(|_| ())),
        ("before", model(|c| c.placement = Placement::Before)),
        ("rotary", model(|c| c.positions = Positions::Rotary)),
        ("convolution after", model(|c| c.convolution = 3)),
        (
            "convolution before",
            model(|c| {
                (c.convolution, c.placement) = (3, Placement::Before);
            }),
        ),
        (
            "digit index",
            model(|c| {
                (c.digit_index, c.positions) = (2, Positions::None);
            }),
        ),
        (
            "number and part index",
            model(|c| {
                (c.number_index, c.part_index) = (2, 3);
            }),
        ),
        (
            "llama",
            model(|c| {
                c.norm = Norm::Rms;
                c.placement = Placement::Before;
                c.positions = Positions::Rotary;
                c.activation = Activation::Gated;
                c.bias = false;
            }),
        ),
        (
            "structured",
            model(|c| {
                c.positions = Positions::Structured;
                c.turn = 2.0;
                c.digit_index = 3;
            }),
        ),
        ("parts", model(|c| c.positions = Positions::Parts)),
        ("zero branches", model(|c| c.zero_branches = true)),
    ]
}

fn logits(model: &Transformer, params: &[f32], batch: &Packed) -> Vec<f32> {
    let decoder = model.decoder(params);
    crate::read_afresh(decoder.as_ref(), &batch.asking_all(), &mut Workspace::default())
}

fn loss(model: &Transformer, params: &[f32], batch: &Packed) -> f64 {
    let mut loss = 0.0;
    for (row, &target) in logits(model, params, batch).chunks(VOCABULARY).zip(batch.targets()) {
        if target != UNSUPERVISED {
            let total: f64 = row.iter().map(|&x| f64::from(x).exp()).sum();
            loss += total.ln() - f64::from(row[usize::from(target)]);
        }
    }
    loss
}

#[test]
fn numbers_in_the_same_place_of_two_parts_are_turned_alike() {
    let numbers = |positions: Positions| -> Vec<usize> {
        let config = TransformerConfig { positions, ..TransformerConfig::default() };
        let model = Transformer::new(&config, &[Role::Border, Role::Digit, Role::Other]).unwrap();
        let context = [0, 1, 2, 1, 0, 1, 2, 1, 1];
        model.turns(&context, &mut Cursor::default()).map(|[_, _, number]| number).collect()
    };
    assert_eq!(numbers(Positions::Structured), [0, 1, 1, 2, 2, 3, 3, 4, 4]);
    assert_eq!(numbers(Positions::Parts), [0, 1, 1, 2, 2, 1, 1, 2, 2]);
}

#[test]
fn gradients_of_all_settings_match_finite_differences() {
    let batch = batch();
    for (name, model) in models() {
        // Away from the start, where some gradients are zero.
        let mut params = model.layout().initial(1);
        for (p, n) in params.iter_mut().zip(noise(model.layout().len(), 2)) {
            *p += 0.1 * n;
        }
        let mut grads = vec![0.0; params.len()];
        let score = model.learn(&params, &batch, 1.0, &mut grads, &mut Workspace::default());
        assert!((score.loss - loss(&model, &params, &batch)).abs() < 1e-4, "{name}");
        for tensor in model.layout().tensors() {
            // Along the gradient itself, which shows any wrong element, and along noise.
            let grad = &grads[tensor.range.clone()];
            for (kind, direction) in [("gradient", grad.to_vec()), ("noise", noise(grad.len(), 3))]
            {
                let length = direction.iter().map(|x| x * x).sum::<f32>().sqrt();
                if length == 0.0 {
                    panic!("{name}: {} has no gradient", tensor.name);
                }
                let moved = |by: f32| {
                    let mut params = params.clone();
                    for (p, d) in params[tensor.range.clone()].iter_mut().zip(&direction) {
                        *p += by * d / length;
                    }
                    loss(&model, &params, &batch)
                };
                let numeric = (moved(2e-3) - moved(-2e-3)) / 4e-3;
                let exact: f64 = grad
                    .iter()
                    .zip(&direction)
                    .map(|(&g, &d)| f64::from(g) * f64::from(d / length))
                    .sum();
                let size = grad.iter().map(|&g| f64::from(g).powi(2)).sum::<f64>().sqrt();
                let apart = (numeric - exact).abs();
                assert!(
                    apart < 0.02 * size + 2e-3,
                    "{name}, {}, {kind}: {exact} {numeric}",
                    tensor.name
                );
            }
        }
    }
}

#[test]
fn gradients_are_added_and_scaled() {
    let (model, batch) = (model(|_| ()), batch());
    let params = model.layout().initial(1);
    let mut work = Workspace::default();
    let (mut once, mut twice) = (vec![0.0; params.len()], vec![0.0; params.len()]);
    model.learn(&params, &batch, 0.5, &mut once, &mut work);
    model.learn(&params, &batch, 0.25, &mut twice, &mut work);
    model.learn(&params, &batch, 0.25, &mut twice, &mut work);
    for (a, b) in once.iter().zip(&twice) {
        assert!((a - b).abs() <= 1e-5 * (1.0 + a.abs()), "{a} {b}");
    }
}

#[test]
fn a_sequence_read_alone_or_in_parts_gives_the_same_bits() {
    for (name, model) in models() {
        let params = model.layout().initial(3);
        let all = logits(&model, &params, &batch());
        crate::testing::assert_same_in_parts(model.decoder(&params).as_ref(), &batch(), &all, name);
    }
}

#[test]
fn the_paper_s_has_as_many_parameters_as_the_paper_says() {
    let network = Transformer::new(&TransformerConfig::default(), &[Role::Other; 24]).unwrap();
    assert_eq!((network.layout().len(), network.limit()), (536_088, 2048));
}

#[test]
fn settings_that_cannot_be_are_refused() {
    let with = |change: fn(&mut TransformerConfig)| {
        let mut config = TransformerConfig::default();
        change(&mut config);
        Transformer::new(&config, &[Role::Other; 24]).map(|_| ()).unwrap_err().to_string()
    };
    assert!(with(|c| c.heads = 0).contains("heads = 0"));
    assert!(with(|c| c.heads = 3).contains("heads = 3"));
    assert!(with(|c| c.heads = 16).contains("multiple of 16"));
    assert!(with(|c| c.layers = 0).contains("layers = 0 is not between 1 and"));
    assert!(with(|c| c.limit = 0).contains("limit"));
}

#[test]
fn flops_count_products_and_half_of_the_attention_square() {
    let network = Transformer::new(&TransformerConfig::default(), &[Role::Other; 24]).unwrap();
    let mut batch = Packed::default();
    batch.push(&[0; 10], &[0; 10]);
    let products = 4 * (128 * 384 + 128 * 128 + 2 * 128 * 256) + 128 * 24;
    let attention = 4 * 2 * 55 * 128;
    assert_eq!(network.flops(&batch), 2 * (10 * products + attention) as u64);
}

#[test]
fn nothing_is_learnt_where_nothing_is_asked() {
    let mut batch = Packed::default();
    batch.push(&[1, 3], &[UNSUPERVISED; 2]);
    for (name, model) in models() {
        let params = noise(model.layout().len(), 1);
        let (mut grads, mut work) = (vec![0.0; params.len()], Workspace::default());
        let score = model.learn(&params, &batch, 1.0, &mut grads, &mut work);
        assert_eq!((score.loss, grads), (0.0, vec![0.0; params.len()]), "{name}");
        let logits = crate::read_afresh(model.decoder(&params).as_ref(), &batch, &mut work);
        assert!(logits.is_empty(), "{name}");
    }
}
