// Where the nodes and edges of a graph are drawn: in layers from left to right, so that
// most edges lead to the right. It only computes, and its time grows with the size of
// the graph alone.

export type Point = readonly [number, number]
export type Box = { id: string; x: number; y: number; w: number; h: number; layer: number }
export type Line = { index: number; points: Point[] } // of the edge with this index, from its source to its target
export type Layout = { boxes: Map<string, Box>; layers: string[][]; lines: Line[]; width: number; height: number }

const gapX = 72, gapY = 14, margin = 16
const mostBends = 20_000 // of all edges together

type Cell = { i: number; w: number; h: number; y: number; ins: number[]; outs: number[] } // i: of the node; -1: an edge passes

export function layout(nodes: { id: string; w: number; h: number }[], edges: { source: string; target: string }[]): Layout {
  const index = new Map(nodes.map((n, i) => [n.id, i]))
  const ends = edges.map((e) => [index.get(e.source) ?? -1, index.get(e.target) ?? -1] as const)
  const { layer, back } = layered(nodes.length, ends)

  const cells: Cell[] = nodes.map((n, i) => ({ i, w: n.w, h: n.h, y: 0, ins: [], outs: [] }))
  const rows: number[][] = Array.from({ length: Math.max(0, ...layer) + 1 }, () => [])
  layer.forEach((l, i) => rows[l]!.push(i))
  const chains = new Map<number, number[]>() // by the index of the edge, from left to right
  let bends = 0
  ends.forEach(([s, t], e) => {
    if (s < 0 || t < 0 || s === t) return
    const [from, to] = back[e] ? [t, s] : [s, t]
    const chain = [from]
    const span = layer[to]! - layer[from]! - 1
    if (bends + span <= mostBends) {
      for (let l = layer[from]! + 1; l < layer[to]!; l++) {
        rows[l]!.push(cells.length)
        chain.push(cells.length)
        cells.push({ i: -1, w: 0, h: 4, y: 0, ins: [], outs: [] })
      }
      bends += span
    }
    chain.push(to)
    for (let k = 1; k < chain.length; k++) { cells[chain[k - 1]!]!.outs.push(chain[k]!); cells[chain[k]!]!.ins.push(chain[k - 1]!) }
    chains.set(e, chain)
  })
  order(cells, rows)
  place(cells, rows)

  const widths = rows.map((row) => Math.max(0, ...row.map((c) => cells[c]!.w)))
  const left: number[] = []
  widths.reduce((x, w, l) => { left[l] = x; return x + w + gapX }, margin)
  const boxes = new Map<string, Box>()
  const middle = (c: number, l: number): Point => [left[l]! + widths[l]! / 2, cells[c]!.y]
  nodes.forEach((n, i) => {
    const l = layer[i]!, [x, y] = middle(i, l)
    boxes.set(n.id, { id: n.id, x: x - n.w / 2, y: y - n.h / 2, w: n.w, h: n.h, layer: l })
  })
  const lines: Line[] = []
  ends.forEach(([s, t], e) => {
    if (s < 0 || t < 0) return
    const a = boxes.get(nodes[s]!.id)!, b = boxes.get(nodes[t]!.id)!
    if (s === t) {
      lines.push({ index: e, points: [[a.x + a.w, a.y + a.h / 2], [a.x + a.w + 20, a.y - 8], [a.x + a.w / 2, a.y]] })
      return
    }
    const chain = chains.get(e)!
    const [from, to] = back[e] ? [b, a] : [a, b]
    const points: Point[] = [[from.x + from.w, from.y + from.h / 2]]
    for (let k = 1; k < chain.length - 1; k++) {
      const l = from.layer + k, y = cells[chain[k]!]!.y
      points.push([left[l]!, y], [left[l]! + widths[l]!, y])
    }
    points.push([to.x, to.y + to.h / 2])
    lines.push({ index: e, points: back[e] ? points.reverse() : points })
  })
  const bottom = Math.max(0, ...cells.map((c) => c.y + c.h / 2))
  return {
    boxes, lines, layers: rows.map((row) => row.filter((c) => cells[c]!.i >= 0).map((c) => nodes[c]!.id)),
    width: (left.at(-1) ?? 0) + (widths.at(-1) ?? 0) + margin, height: bottom + margin,
  }
}

// layered puts every node to the right of its predecessors. Edges that close a cycle lead back.
function layered(n: number, ends: (readonly [number, number])[]): { layer: number[]; back: boolean[] } {
  const outs: number[][] = Array.from({ length: n }, () => []), reached = new Array<boolean>(n).fill(false)
  ends.forEach(([s, t], e) => { if (s >= 0 && t >= 0 && s !== t) { outs[s]!.push(e); reached[t] = true } })
  const back = new Array<boolean>(ends.length).fill(false)
  const mark = new Uint8Array(n) // 1: on the path, 2: done
  const done: number[] = []
  const roots = [...reached.keys()].sort((a, b) => Number(reached[a]) - Number(reached[b]) || a - b)
  for (const root of roots) {
    if (mark[root]) continue
    mark[root] = 1
    const path: [number, number][] = [[root, 0]]
    while (path.length) {
      const top = path[path.length - 1]!
      const e = outs[top[0]]![top[1]++]
      if (e === undefined) { mark[top[0]] = 2; done.push(top[0]); path.pop(); continue }
      const to = ends[e]![1]
      if (mark[to] === 1) back[e] = true
      else if (mark[to] === 0) { mark[to] = 1; path.push([to, 0]) }
    }
  }
  const layer = new Array<number>(n).fill(0)
  const ins: number[][] = Array.from({ length: n }, () => []), after: number[][] = Array.from({ length: n }, () => [])
  ends.forEach(([s, t], e) => {
    if (s < 0 || t < 0 || s === t) return
    const [from, to] = back[e] ? [t, s] : [s, t]
    after[from]!.push(to); ins[to]!.push(from)
  })
  // Without the edges that lead back, the reverse of the order in which nodes were done
  // has each node after its predecessors. An edge that leads back, turned round, keeps that.
  for (const v of done.reverse()) for (const to of after[v]!) layer[to] = Math.max(layer[to]!, layer[v]! + 1)
  // What nothing leads to stands just before what it leads to.
  for (let v = 0; v < n; v++) if (!ins[v]!.length && after[v]!.length) layer[v] = Math.min(...after[v]!.map((to) => layer[to]!)) - 1
  return { layer, back }
}

// order sorts each layer by where the neighbours of its cells are, to and fro.
function order(cells: Cell[], rows: number[][]) {
  const at = new Float64Array(cells.length)
  for (const row of rows) row.forEach((c, k) => { at[c] = k })
  for (let sweep = 0; sweep < 8; sweep++) {
    const forth = sweep % 2 === 0
    for (let k = 0; k < rows.length; k++) {
      const row = rows[forth ? k : rows.length - 1 - k]!
      const key = new Map(row.map((c) => {
        const near = forth ? cells[c]!.ins : cells[c]!.outs
        return [c, near.length ? near.reduce((sum, o) => sum + at[o]!, 0) / near.length : at[c]!]
      }))
      row.sort((a, b) => key.get(a)! - key.get(b)! || at[a]! - at[b]!)
      row.forEach((c, i) => { at[c] = i })
    }
  }
}

// place moves each cell towards the middle of its neighbours, as far as those beside it allow.
function place(cells: Cell[], rows: number[][]) {
  for (const row of rows) row.reduce((y, c) => { const x = cells[c]!; x.y = y + x.h / 2; return y + x.h + gapY }, 0)
  for (let sweep = 0; sweep < 8; sweep++) {
    const forth = sweep % 2 === 0
    for (let k = 0; k < rows.length; k++) {
      const row = rows[forth ? k : rows.length - 1 - k]!
      const wish = row.map((c) => {
        const near = forth ? cells[c]!.ins : cells[c]!.outs
        return near.length ? near.reduce((sum, o) => sum + cells[o]!.y, 0) / near.length : cells[c]!.y
      })
      const apart = (i: number) => (cells[row[i]!]!.h + cells[row[i + 1]!]!.h) / 2 + gapY
      const down = [...wish], up = [...wish]
      for (let i = 1; i < row.length; i++) down[i] = Math.max(down[i]!, down[i - 1]! + apart(i - 1))
      for (let i = row.length - 2; i >= 0; i--) up[i] = Math.min(up[i]!, up[i + 1]! - apart(i))
      // Both keep the distances, so the mean of both does.
      row.forEach((c, i) => { cells[c]!.y = (down[i]! + up[i]!) / 2 })
    }
  }
  const top = Math.min(...cells.map((c) => c.y - c.h / 2))
  for (const c of cells) c.y += margin - top
}

// curve is the path of an SVG along points, with level ends.
export function curve(points: Point[]): string {
  let d = `M${round(points[0]![0])} ${round(points[0]![1])}`
  for (let k = 1; k < points.length; k++) {
    const [x1, y1] = points[k - 1]!, [x2, y2] = points[k]!
    d += y1 === y2 ? `L${round(x2)} ${round(y2)}` : `C${round((x1 + x2) / 2)} ${round(y1)} ${round((x1 + x2) / 2)} ${round(y2)} ${round(x2)} ${round(y2)}`
  }
  return d
}
const round = (n: number) => Math.round(n * 10) / 10
