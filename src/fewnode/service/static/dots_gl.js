// Dots by WebGL: all nodes in one call, so that a map of 60,000 follows the hand.

const VERTEX = `#version 300 es
in vec2 place; in vec2 look;
uniform vec4 fit; uniform vec2 size; uniform float radius; uniform vec4 palette[19];
out vec4 paint; flat out int kind;
void main() {
  vec2 at = place * fit.xz + fit.yw;
  gl_Position = vec4(at.x / size.x * 2. - 1., 1. - at.y / size.y * 2., 0., 1.);
  int c = int(look.x);
  gl_PointSize = radius * (c == 0 ? 1.7 : c < 13 ? 2. : 2.8);
  paint = palette[c]; kind = int(look.y);
}`;
const FRAGMENT = `#version 300 es
precision mediump float;
in vec4 paint; flat in int kind; out vec4 drawn;
void main() {
  vec2 p = (gl_PointCoord - .5) * 2.; vec2 q = abs(p); float d;
  if (kind == 1) d = max(q.x, q.y) - .8;
  else if (kind == 2) d = max(q.x * .87 - p.y * .5 - .45, p.y - .75);
  else if (kind == 3) d = (q.x + q.y) * .75 - .75;
  else if (kind == 4) d = max(min(q.x, q.y) - .35, max(q.x, q.y) - .95);
  else if (kind == 5) d = max(q.x * .87 + q.y * .5, q.y) - .85;
  else d = length(p) - .95;
  float a = clamp(.5 - d / max(fwidth(d), .001), 0., 1.);
  if (a < .02) discard;
  drawn = vec4(paint.rgb, 1.) * paint.a * a;
}`;

function compiled(gl) {
  const program = gl.createProgram();
  for (const [kind, source] of [
    [gl.VERTEX_SHADER, VERTEX],
    [gl.FRAGMENT_SHADER, FRAGMENT],
  ]) {
    const shader = gl.createShader(kind);
    gl.shaderSource(shader, source);
    gl.compileShader(shader);
    gl.attachShader(program, shader);
  }
  gl.linkProgram(program);
  return gl.getProgramParameter(program, gl.LINK_STATUS) ? program : null;
}

// Null where there is no WebGL 2 or, with `careful`, where it would be drawn by the processor: a plain canvas is quicker then.
export function glDots(canvas, careful = true) {
  const gl = canvas.getContext("webgl2", { antialias: false, failIfMajorPerformanceCaveat: careful });
  const program = gl && compiled(gl);
  if (!program) return null;
  const [points, looks, index] = [gl.createBuffer(), gl.createBuffer(), gl.createBuffer()];
  const at = (name) => gl.getUniformLocation(program, name);
  const uniforms = { fit: at("fit"), size: at("size"), radius: at("radius"), palette: at("palette") };
  let count = 0;
  gl.useProgram(program);
  gl.enable(gl.BLEND);
  gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);

  function attribute(buffer, name, type, data) {
    const place = gl.getAttribLocation(program, name);
    gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
    gl.bufferData(gl.ARRAY_BUFFER, data, gl.STATIC_DRAW);
    gl.enableVertexAttribArray(place);
    gl.vertexAttribPointer(place, 2, type, false, 0, 0);
  }

  const pairs = (made, a, b) => {
    for (let i = 0; i < a.length; i++) [made[2 * i], made[2 * i + 1]] = [a[i], b[i]];
    return made;
  };

  return {
    points: (x, y) => attribute(points, "place", gl.FLOAT, pairs(new Float32Array(2 * x.length), x, y)),
    looks({ colour, shape, order }) {
      attribute(looks, "look", gl.UNSIGNED_BYTE, pairs(new Uint8Array(2 * colour.length), colour, shape));
      gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, index);
      gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, order, gl.STATIC_DRAW);
      count = order.length;
    },
    palette: (colours) => gl.uniform4fv(uniforms.palette, colours.flat()),
    draw({ sx, ox, sy, oy }, [width, height], scale, radius) {
      gl.viewport(0, 0, canvas.width, canvas.height);
      gl.clearColor(0, 0, 0, 0);
      gl.clear(gl.COLOR_BUFFER_BIT);
      gl.uniform4f(uniforms.fit, sx, ox, sy, oy);
      gl.uniform2f(uniforms.size, width, height);
      gl.uniform1f(uniforms.radius, radius * scale);
      if (count) gl.drawElements(gl.POINTS, count, gl.UNSIGNED_INT, 0);
    },
  };
}
