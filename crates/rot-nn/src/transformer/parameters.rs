//! Where the parameters of the Transformer lie, and how they start.

use std::ops::Range;

use super::config::{Activation, TransformerConfig};
use crate::kernels::matmul::{Into, Matrix, matmul};
use crate::kernels::norm::Norm;
use crate::kernels::rows::sum_rows;
use crate::{Initial, Layout};

/// Where the parameters of a product lie; the bias may be empty.
#[derive(Clone, Debug)]
pub(super) struct Linear {
    pub(super) weight: Range<usize>,
    pub(super) bias: Range<usize>,
}

/// Where the parameters of a norm lie; the bias may be empty.
#[derive(Clone, Debug)]
pub(super) struct NormParams {
    pub(super) gain: Range<usize>,
    pub(super) bias: Range<usize>,
}

/// A branch: its norm, its convolution, and the products on its way in and out.
#[derive(Clone, Debug)]
pub(super) struct Branch {
    pub(super) norm: NormParams,
    pub(super) taps: Range<usize>,
    pub(super) inward: Linear,
    pub(super) outward: Linear,
}

/// Lays out parameters one after another.
pub(super) struct Builder<'a> {
    pub(super) config: &'a TransformerConfig,
    pub(super) layout: Layout,
}

impl Builder<'_> {
    /// A table of rows, such as an embedding; nothing if it has none.
    pub(super) fn table(&mut self, name: &str, rows: usize, initial: Initial) -> Range<usize> {
        match rows {
            0 => 0..0,
            _ => self.layout.add(name, &[rows, self.config.width], initial),
        }
    }

    /// A norm in front of the output, or of a branch.
    pub(super) fn norm(&mut self, name: &str) -> NormParams {
        let shape = [self.config.width];
        let gain = self.layout.add(format!("{name}.weight"), &shape, Initial::Constant(1.0));
        let bias = match self.config.norm {
            Norm::Layer if self.config.bias => {
                self.layout.add(format!("{name}.bias"), &shape, Initial::Constant(0.0))
            }
            _ => 0..0,
        };
        NormParams { gain, bias }
    }

    /// The output: a row of logits from a row of channels.
    pub(super) fn output(&mut self, vocabulary: usize) -> Linear {
        let bound = 1.0 / (self.config.width as f32).sqrt();
        let shape = [vocabulary, self.config.width];
        self.linear(["output.weight", "output.bias"].map(String::from), shape, [bound; 2], 0)
    }

    /// The attention and the feed-forward branch of a layer, starting as PyTorch's do.
    pub(super) fn layer(&mut self, layer: usize) -> [Branch; 2] {
        let TransformerConfig { width, feed_forward, convolution, .. } = *self.config;
        let name = |part: &str| format!("transformer_encoder.layers.{layer}.{part}");
        let zero = self.config.zero_branches;
        let bound = |fan_in: usize| 1.0 / (fan_in as f32).sqrt();
        let outward = |fan_in: usize| if zero { 0.0 } else { bound(fan_in) };

        // Queries, keys and values are drawn as one Glorot matrix.
        let glorot = (6.0 / (4 * width) as f32).sqrt();
        let names = [name("self_attn.in_proj_weight"), name("self_attn.in_proj_bias")];
        let inward = self.linear(names, [3 * width, width], [glorot, 0.0], 3);
        let names = [name("self_attn.out_proj.weight"), name("self_attn.out_proj.bias")];
        let bounds = [outward(width), 0.0];
        let attention = Branch {
            inward,
            outward: self.linear(names, [width, width], bounds, 1),
            norm: self.norm(&name("norm1")),
            taps: self.table(&name("conv1.weight"), convolution, Initial::Constant(0.0)),
        };

        let halves = match self.config.activation {
            Activation::Relu => 1,
            Activation::Gated => 2,
        };
        let names = [name("linear1.weight"), name("linear1.bias")];
        let inward = self.linear(names, [halves * feed_forward, width], [bound(width); 2], halves);
        let names = [name("linear2.weight"), name("linear2.bias")];
        let bounds = [outward(feed_forward); 2];
        let feed_forward = Branch {
            inward,
            outward: self.linear(names, [width, feed_forward], bounds, 1),
            norm: self.norm(&name("norm2")),
            taps: self.table(&name("conv2.weight"), convolution, Initial::Constant(0.0)),
        };
        [attention, feed_forward]
    }

    /// A product with uniform weights and bias; a bound of zero starts at zero.
    fn linear(
        &mut self,
        [weight, bias]: [String; 2],
        shape: [usize; 2],
        bounds: [f32; 2],
        matrices: usize,
    ) -> Linear {
        let initial = bounds.map(Initial::Uniform);
        let weight = self.layout.add_matrices(weight, &shape, initial[0], matrices);
        let bias = match self.config.bias {
            true => self.layout.add(bias, &shape[..1], initial[1]),
            false => 0..0,
        };
        Linear { weight, bias }
    }
}

impl Linear {
    /// `y += x W^T`, where `x` is `[n, in]`, `y` is `[n, out]`.
    pub(super) fn forward(&self, params: &[f32], x: &[f32], columns: usize, y: &mut [f32]) {
        let weight = Matrix::new(&params[self.weight.clone()], columns);
        matmul(y, Into::Sum, Matrix::new(x, columns), weight.t());
    }

    /// Adds the gradients of weight and bias, given the input and the gradient of the output.
    pub(super) fn learn(&self, x: &[f32], columns: usize, dy: &[f32], grads: &mut [f32]) {
        let rows = self.weight.len() / columns;
        let dweight = &mut grads[self.weight.clone()];
        matmul(dweight, Into::Sum, Matrix::new(dy, rows).t(), Matrix::new(x, columns));
        sum_rows(&mut grads[self.bias.clone()], dy);
    }

    /// The gradient of the input: `dx = dy W` or `dx += dy W`.
    pub(super) fn backward(
        &self,
        params: &[f32],
        columns: usize,
        dy: &[f32],
        into: Into,
        dx: &mut [f32],
    ) {
        let rows = self.weight.len() / columns;
        let weight = Matrix::new(&params[self.weight.clone()], columns);
        matmul(dx, into, Matrix::new(dy, rows), weight);
    }
}
