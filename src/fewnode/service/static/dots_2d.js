// Dots without WebGL: stamped into the pixels of a plain canvas.

const sized = (colour) => (colour === 0 ? 0.85 : colour < 13 ? 1 : 1.4);
const INSIDE = [
  (x, y) => x * x + y * y <= 0.95,
  (x, y) => Math.max(Math.abs(x), Math.abs(y)) <= 0.8,
  (x, y) => y <= 0.75 && Math.abs(x) * 0.87 - y * 0.5 <= 0.45,
  (x, y) => Math.abs(x) + Math.abs(y) <= 1,
  (x, y) => Math.min(Math.abs(x), Math.abs(y)) <= 0.35 && Math.max(Math.abs(x), Math.abs(y)) <= 0.95,
  (x, y) => Math.max(Math.abs(x) * 0.87 + Math.abs(y) * 0.5, Math.abs(y)) <= 0.85,
];
const QUARTERS = [-0.25, 0.25].flatMap((x) => [-0.25, 0.25].map((y) => [x, y]));

// How much of each pixel around a dot a shape covers, of 256: [dx, dy, cover, dx, dy, cover, …].
function stamp(shape, radius, alpha) {
  const reach = Math.ceil(radius);
  const found = [];
  for (let dy = -reach; dy <= reach; dy++)
    for (let dx = -reach; dx <= reach; dx++) {
      const hits = QUARTERS.filter(([ox, oy]) => INSIDE[shape]((dx + ox) / radius, (dy + oy) / radius)).length;
      if (hits) found.push(dx, dy, Math.round(64 * hits * alpha));
    }
  return Int16Array.from(found);
}

export function plainDots(canvas) {
  const context = canvas.getContext("2d");
  let [x, y] = [[], []];
  let look = null;
  let colours = [];
  let ground = 0xffffffff;
  return {
    points: (...given) => ([x, y] = given),
    looks: (given) => (look = given),
    palette(given, [r, g, b]) {
      colours = given;
      ground = ((255 << 24) | (Math.round(255 * b) << 16) | (Math.round(255 * g) << 8) | Math.round(255 * r)) >>> 0;
    },
    draw({ sx, ox, sy, oy }, _, scale, radius) {
      const { width, height } = canvas;
      if (!look || !width || !height) return;
      const image = context.createImageData(width, height);
      const pixels = image.data;
      new Uint32Array(pixels.buffer).fill(ground);
      const stamps = [];
      const { order, colour, shape } = look;
      for (let n = 0; n < order.length; n++) {
        const i = order[n];
        const px = Math.round((x[i] * sx + ox) * scale);
        const py = Math.round((y[i] * sy + oy) * scale);
        if (px < -9 || py < -9 || px > width + 9 || py > height + 9) continue;
        const c = colours[colour[i]];
        const made = (stamps[colour[i] * 8 + shape[i]] ??= stamp(shape[i], radius * scale * sized(colour[i]), c[3]));
        const r = 255 * c[0];
        const g = 255 * c[1];
        const b = 255 * c[2];
        for (let k = 0; k < made.length; k += 3) {
          const cx = px + made[k];
          const cy = py + made[k + 1];
          if (cx < 0 || cy < 0 || cx >= width || cy >= height) continue;
          const at = 4 * (cy * width + cx);
          const a = made[k + 2] / 256;
          pixels[at] += (r - pixels[at]) * a;
          pixels[at + 1] += (g - pixels[at + 1]) * a;
          pixels[at + 2] += (b - pixels[at + 2]) * a;
        }
      }
      context.putImageData(image, 0, 0);
    },
  };
}
