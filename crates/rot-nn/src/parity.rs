//! Comparison with PyTorch: the same parameters and batch must give the same logits, gradients and
//! losses.
//!
//! The file is safetensors: parameters (`param.*`), one padded batch (`x`, `y`, `supervised`,
//! `lengths`, batch first), its `logits`, all gradients (`grad.*`), the `losses` of some Adam steps on
//! that batch, and the parameters after them (`param_after.*`). Its metadata holds `kind`
//! (Transformer or LSTM), the PyTorch `config` and the `vocab` as JSON.

use std::fs;
use std::path::{Path, PathBuf};

use safetensors::{Dtype, SafeTensors};
use serde::Deserialize;

use crate::{
    ConfigError, Lstm, LstmConfig, Network, Optimizer, OptimizerConfig, Packed, Role, Transformer,
    TransformerConfig, UNSUPERVISED, Workspace, read_afresh,
};

/// The largest differences that pass: of a logit, of a gradient (relative, by the norm of the tensor),
/// of a loss.
pub const TOLERANCES: [f64; 3] = [1e-4, 1e-3, 1e-4];

/// How far two computations differ.
#[derive(Clone, Debug)]
pub struct Parity {
    /// The model, as it is called in the file.
    pub kind: String,
    /// The number of its parameters.
    pub parameters: usize,
    /// The largest difference of a logit.
    pub logits: f64,
    /// The relative difference of each gradient, by the norm of its tensor.
    pub gradients: Vec<(String, f64)>,
    /// The difference of each loss.
    pub losses: Vec<f64>,
    /// The largest difference of a parameter after all steps.
    pub parameters_after: f64,
}

impl Parity {
    /// The gradient that differs most.
    pub fn worst_gradient(&self) -> Option<&(String, f64)> {
        self.gradients.iter().max_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// Whether all differences are within [`TOLERANCES`]. One that is not a number is not.
    pub fn holds(&self) -> bool {
        let [logits, gradients, losses] = TOLERANCES;
        self.logits <= logits
            && self.gradients.iter().all(|(_, difference)| *difference <= gradients)
            && self.losses.iter().all(|difference| *difference <= losses)
    }
}

/// Why a file cannot be compared with.
#[derive(Debug, thiserror::Error)]
pub enum ParityError {
    /// It cannot be read.
    #[error("cannot read '{}': {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// It is not what it should be.
    #[error("'{}' is not a parity file: {what}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
}

/// Computes what the file holds once more, and compares.
pub fn compare(path: &Path) -> Result<Parity, ParityError> {
    let bytes =
        fs::read(path).map_err(|source| ParityError::Read { path: path.to_path_buf(), source })?;
    compare_bytes(&bytes).map_err(|what| ParityError::Format { path: path.to_path_buf(), what })
}

/// PyTorch's settings of either model.
#[derive(Deserialize)]
struct Config {
    d_model: Option<usize>,
    nhead: Option<usize>,
    dim_feedforward: Option<usize>,
    input_size: Option<usize>,
    hidden_size: Option<usize>,
    num_layers: usize,
    optim_args: OptimArgs,
}

#[derive(Deserialize)]
struct OptimArgs {
    lr: f32,
}

impl Config {
    fn network(
        &self,
        kind: &str,
        vocabulary: usize,
        limit: usize,
    ) -> Result<Box<dyn Network>, String> {
        let need = |value: Option<usize>, name: &str| {
            value.ok_or_else(|| format!("its config has no '{name}'"))
        };
        let said = |error: ConfigError| error.to_string();
        match kind {
            "Transformer" => {
                let config = TransformerConfig {
                    layers: self.num_layers,
                    width: need(self.d_model, "d_model")?,
                    heads: need(self.nhead, "nhead")?,
                    feed_forward: need(self.dim_feedforward, "dim_feedforward")?,
                    limit,
                    ..TransformerConfig::default()
                };
                let network =
                    Transformer::new(&config, &vec![Role::Other; vocabulary]).map_err(said)?;
                Ok(Box::new(network))
            }
            "LSTM" => {
                let config = LstmConfig {
                    layers: self.num_layers,
                    embedding: need(self.input_size, "input_size")?,
                    hidden: need(self.hidden_size, "hidden_size")?,
                    limit,
                    ..LstmConfig::default()
                };
                Ok(Box::new(Lstm::new(&config, vocabulary).map_err(said)?))
            }
            other => Err(format!("its kind is '{other}', not Transformer or LSTM")),
        }
    }
}

fn compare_bytes(bytes: &[u8]) -> Result<Parity, String> {
    let (_, header) = SafeTensors::read_metadata(bytes).map_err(|error| error.to_string())?;
    let metadata = header.metadata().clone().unwrap_or_default();
    let text = |key: &str| metadata.get(key).ok_or_else(|| format!("its metadata has no '{key}'"));
    let file =
        File { tensors: SafeTensors::deserialize(bytes).map_err(|error| error.to_string())? };
    let kind = text("kind")?.clone();
    let config: Config = parse(text("config")?)?;
    let vocabulary: Vec<String> = parse(text("vocab")?)?;
    let (batch, rows) = file.batch(vocabulary.len())?;
    let longest = batch.sequences().map(|sequence| sequence.len()).max().unwrap_or(0);
    let network = config.network(&kind, vocabulary.len(), longest.max(1))?;
    let params = file.parameters(network.as_ref(), "param.")?;

    let decoder = network.decoder(&params);
    let logits = read_afresh(decoder.as_ref(), &batch.asking_all(), &mut Workspace::default());
    let theirs = file.floats("logits")?;
    let width = vocabulary.len();
    let mut worst = 0.0f64;
    for (ours, &row) in logits.chunks_exact(width).zip(&rows) {
        let theirs = theirs.get(row * width..(row + 1) * width).ok_or("'logits' is too short")?;
        worst = largest(worst, difference(ours, theirs));
    }

    let grads = file.parameters(network.as_ref(), "grad.")?;
    let losses = file.doubles("losses")?;
    let run = Run { network: network.as_ref(), batch: &batch, rate: config.optim_args.lr };
    let (ours, after, our_losses) = run.steps(params, losses.len());
    let gradients = network.layout().tensors().iter().map(|tensor| {
        let (ours, theirs) = (&ours[tensor.range.clone()], &grads[tensor.range.clone()]);
        (tensor.name.clone(), relative(ours, theirs))
    });
    Ok(Parity {
        kind,
        parameters: network.layout().len(),
        logits: worst,
        gradients: gradients.collect(),
        losses: our_losses.iter().zip(&losses).map(|(a, b)| (a - b).abs()).collect(),
        parameters_after: difference(&after, &file.parameters(network.as_ref(), "param_after.")?),
    })
}

/// Adam on one batch.
struct Run<'a> {
    network: &'a dyn Network,
    batch: &'a Packed,
    rate: f32,
}

impl Run<'_> {
    /// The first gradient, the last parameters, and the loss before each step.
    fn steps(&self, mut params: Vec<f32>, count: usize) -> (Vec<f32>, Vec<f32>, Vec<f64>) {
        let layout = self.network.layout();
        let config = OptimizerConfig { rate: self.rate, ..OptimizerConfig::default() };
        let mut optimizer = Optimizer::new(&config, layout);
        let mut work = Workspace::default();
        let (mut first, mut losses) = (Vec::new(), Vec::new());
        let supervised = self.batch.supervised().count().max(1);
        for step in 0..count {
            let mut grads = vec![0.0; layout.len()];
            let scale = 1.0 / supervised as f32;
            let score = self.network.learn(&params, self.batch, scale, &mut grads, &mut work);
            losses.push(score.loss / supervised as f64);
            if step == 0 {
                first.clone_from(&grads);
            }
            optimizer.step(layout, &mut params, &mut grads, 0.0, 1.0);
        }
        (first, params, losses)
    }
}

fn parse<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| format!("its metadata cannot be read: {error}"))
}

/// The larger of two, or what is not a number.
fn largest(a: f64, b: f64) -> f64 {
    if a >= b { a } else { b }
}

fn difference(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, b)| f64::from((a - b).abs())).fold(0.0, largest)
}

/// The norm of the difference, relative to the norm of what it should be.
fn relative(ours: &[f32], theirs: &[f32]) -> f64 {
    let norm = |square: &mut dyn Iterator<Item = f64>| square.map(|x| x * x).sum::<f64>().sqrt();
    let apart = norm(&mut ours.iter().zip(theirs).map(|(a, b)| f64::from(a - b)));
    apart / norm(&mut theirs.iter().map(|&b| f64::from(b))).max(1e-12)
}

/// The tensors of a parity file.
struct File<'a> {
    tensors: SafeTensors<'a>,
}

impl File<'_> {
    fn data(&self, name: &str, dtype: Dtype) -> Result<&[u8], String> {
        let tensor = self.tensors.tensor(name).map_err(|_| format!("it has no tensor '{name}'"))?;
        match tensor.dtype() {
            found if found == dtype => Ok(tensor.data()),
            found => Err(format!("'{name}' holds {found:?}, not {dtype:?}")),
        }
    }

    fn floats(&self, name: &str) -> Result<Vec<f32>, String> {
        let data = self.data(name, Dtype::F32)?;
        Ok(data.as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect())
    }

    fn doubles(&self, name: &str) -> Result<Vec<f64>, String> {
        let data = self.data(name, Dtype::F64)?;
        Ok(data.as_chunks().0.iter().map(|&bytes| f64::from_le_bytes(bytes)).collect())
    }

    fn integers(&self, name: &str) -> Result<Vec<i64>, String> {
        let data = self.data(name, Dtype::I64)?;
        Ok(data.as_chunks().0.iter().map(|&bytes| i64::from_le_bytes(bytes)).collect())
    }

    /// All parameters, or something that each of them has.
    fn parameters(&self, network: &dyn Network, prefix: &str) -> Result<Vec<f32>, String> {
        let mut all = Vec::with_capacity(network.layout().len());
        for tensor in network.layout().tensors() {
            let name = format!("{prefix}{}", tensor.name);
            let part = self.floats(&name)?;
            if part.len() != tensor.range.len() {
                let (found, need) = (part.len(), tensor.range.len());
                return Err(format!("'{name}' has {found} elements, not {need}"));
            }
            all.extend(part);
        }
        Ok(all)
    }

    /// The batch without its padding, and the padded row of each token.
    fn batch(&self, vocabulary: usize) -> Result<(Packed, Vec<usize>), String> {
        let (x, y) = (self.integers("x")?, self.integers("y")?);
        let supervised = self.data("supervised", Dtype::U8)?;
        let lengths = self.integers("lengths")?;
        let width = x.len() / lengths.len().max(1);
        let id = |id: i64| match u8::try_from(id) {
            Ok(id) if usize::from(id) < vocabulary => Ok(id),
            _ => Err(format!("the batch has an id {id} outside the vocabulary")),
        };
        let (mut batch, mut rows) = (Packed::default(), Vec::new());
        for (sequence, &length) in lengths.iter().enumerate() {
            let start = sequence * width;
            let length = usize::try_from(length).unwrap_or(usize::MAX);
            if length > width || x.len() != y.len() || x.len() != supervised.len() {
                return Err("'x', 'y', 'supervised' and 'lengths' do not fit".to_owned());
            }
            let mut targets = Vec::with_capacity(length);
            for i in start..start + length {
                targets.push(if supervised[i] != 0 { id(y[i])? } else { UNSUPERVISED });
            }
            let ids: Vec<u8> =
                x[start..start + length].iter().map(|&x| id(x)).collect::<Result<_, _>>()?;
            batch.push(&ids, &targets);
            rows.extend(start..start + length);
        }
        Ok((batch, rows))
    }
}
