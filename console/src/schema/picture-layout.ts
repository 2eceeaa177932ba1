/** A box of the picture: its rows, and the links that start from them. */
export type Box = { key: string; rows: number; links: readonly { row: number; target: string }[] }

export type PlacedBox = { key: string; x: number; y: number; width: number; height: number; column: number }
export type Point = { x: number; y: number }
/** The path of a link from its row to the header of its target. */
export type Arrow = { source: string; row: number; target: string; points: Point[] }
export type Layout = { width: number; height: number; boxes: PlacedBox[]; arrows: Arrow[] }

export const boxWidth = 230
export const headerHeight = 46
export const rowHeight = 22
const boxPadding = 8
/** The minimum space between two boxes of a column. Arrows that cross the column pass through it. */
const boxGap = 28
const laneGap = 9
const gutterPadding = 20
/** With more boxes than this, they are placed on both sides of the middle box. */
const maxOneSided = 8
/** The approximate ratio of the picture's width to its height. */
const aspect = 1.5

const heightOf = ({ rows }: Box) => headerHeight + rows * rowHeight + boxPadding
/** The height where the arrow of a row starts. */
const rowY = (box: PlacedBox, row: number) => box.y + headerHeight + (row + 0.5) * rowHeight

/**
 * Places the boxes in columns around the box with the most links, and routes the arrows between them. No arrow crosses
 * a box.
 */
export function layOut(boxes: readonly Box[], middle: string): Layout {
  const columns = orderColumns(columnsOf(boxes, middle), boxes)
  const routes = routesOf(boxes, columns)
  const placed = placeRows(boxes, columns, routes)
  return drawArrows(placed, columns.length, routes)
}

/** The boxes that each box is linked with, in either direction. */
function neighboursOf(boxes: readonly Box[]): Map<string, Set<string>> {
  const neighbours = new Map(boxes.map(({ key }) => [key, new Set<string>()]))
  for (const { key, links } of boxes)
    for (const { target } of links)
      if (target !== key && neighbours.has(target)) {
        neighbours.get(key)!.add(target)
        neighbours.get(target)!.add(key)
      }
  return neighbours
}

type Side = 'left' | 'right'
type Seat = { key: string; depth: number; side: Side }

/** Ranks each box by its distance in links from the middle box. Unlinked boxes come last. */
function seatsOf(boxes: readonly Box[], middle: string): Seat[] {
  const neighbours = neighboursOf(boxes)
  const heights = { left: 0, right: 0 }
  const boxByKey = new Map(boxes.map(box => [box.key, box]))
  const seats = new Map<string, Seat>()
  const seat = (key: string, depth: number, side: Side) => {
    heights[side] += heightOf(boxByKey.get(key)!)
    seats.set(key, { key, depth, side })
  }
  const sideOf = (parent: Seat): Side => {
    if (boxes.length <= maxOneSided) return 'right'
    if (parent.depth > 0) return parent.side
    return heights.left < heights.right ? 'left' : 'right'
  }
  const byDegree = boxes.toSorted((one, other) => neighbours.get(other.key)!.size - neighbours.get(one.key)!.size)
  const roots = [...byDegree.filter(({ key }) => key === middle), ...byDegree]
  for (const { key: root } of roots) {
    if (seats.has(root)) continue
    const deepest = Math.max(-1, ...[...seats.values()].map(({ depth }) => depth))
    const isAlone = neighbours.get(root)!.size === 0 && seats.size > 0
    seats.set(root, { key: root, depth: isAlone ? Number.POSITIVE_INFINITY : deepest + 1, side: 'right' })
    const queue = [root]
    for (const key of queue)
      for (const next of neighbours.get(key)!) {
        if (seats.has(next)) continue
        const parent = seats.get(key)!
        seat(next, parent.depth + 1, sideOf(parent))
        queue.push(next)
      }
  }
  return [...seats.values()]
}

/** The columns from left to right, each with the keys of its boxes. */
function columnsOf(boxes: readonly Box[], middle: string): string[][] {
  const seats = seatsOf(boxes, middle)
  const heights = new Map(boxes.map(box => [box.key, heightOf(box) + boxGap]))
  const area = [...heights.values()].reduce((sum, height) => sum + height * (boxWidth + 4 * gutterPadding), 0)
  const maxHeight = Math.max(...heights.values(), Math.sqrt(area / aspect))
  const columnsOn = (side: Side) => {
    const byDepth = Map.groupBy(
      seats.filter(seat => seat.side === side),
      ({ depth }) => depth,
    )
    const ordered = [...byDepth].toSorted(([one], [other]) => one - other)
    return ordered.flatMap(([, seated]) => {
      const keys = seated.map(({ key }) => key)
      return chunk(keys, key => heights.get(key)!, maxHeight)
    })
  }
  return [...columnsOn('left').toReversed(), ...columnsOn('right')]
}

/** Splits a list into parts of about equal size, each at most `maxSize`. */
function chunk(keys: readonly string[], sizeOf: (key: string) => number, maxSize: number): string[][] {
  const total = keys.reduce((sum, key) => sum + sizeOf(key), 0)
  const target = total / Math.ceil(total / maxSize)
  const parts: string[][] = [[]]
  let size = 0
  for (const key of keys) {
    if (size > 0 && size + sizeOf(key) / 2 > target && parts.length < Math.ceil(total / maxSize)) {
      parts.push([])
      size = 0
    }
    parts.at(-1)!.push(key)
    size += sizeOf(key)
  }
  return parts
}

/** Orders the boxes of each column by the average position of their linked boxes, so that fewer arrows cross. */
function orderColumns(columns: string[][], boxes: readonly Box[]): string[][] {
  const neighbours = neighboursOf(boxes)
  let ordered = columns
  for (let sweep = 0; sweep < 4; sweep += 1) {
    const positions = new Map(
      ordered.flatMap(keys => keys.map((key, index) => [key, (index + 0.5) / keys.length] as const)),
    )
    const weightOf = (key: string) => {
      const others = [...neighbours.get(key)!].map(other => positions.get(other)!)
      return others.length > 0 ? others.reduce((sum, at) => sum + at, 0) / others.length : positions.get(key)!
    }
    ordered = ordered.map(keys => keys.toSorted((one, other) => weightOf(one) - weightOf(other)))
  }
  return ordered
}

/** A link with the gap, counted from the top, through which it crosses each column. */
type Route = {
  source: string
  row: number
  target: string
  from: number
  to: number
  crossings: { column: number; gap: number }[]
}

function routesOf(boxes: readonly Box[], columns: readonly string[][]): Route[] {
  const seats = new Map(
    columns.flatMap((keys, column) =>
      keys.map((key, index) => [key, { column, at: (index + 0.5) / keys.length }] as const),
    ),
  )
  return boxes.flatMap(({ key, links }) =>
    links
      .filter(({ target }) => seats.has(target))
      .map(({ row, target }) => {
        const [from, to] = [seats.get(key)!, seats.get(target)!]
        const step = Math.sign(to.column - from.column)
        const crossings: Route['crossings'] = []
        for (let column = from.column + step; step !== 0 && column !== to.column; column += step) {
          const share = (column - from.column) / (to.column - from.column)
          const at = from.at + (to.at - from.at) * share
          crossings.push({ column, gap: Math.round(at * columns[column]!.length) })
        }
        return { source: key, row, target, from: from.column, to: to.column, crossings }
      }),
  )
}

type Placed = {
  boxes: PlacedBox[]
  height: number
  /** The height at which a route crosses a column. */
  crossingY: (route: Route, column: number) => number
}

/** Gives each box its vertical position in its column. A gap is as wide as its crossing arrows need. */
function placeRows(boxes: readonly Box[], columns: readonly string[][], routes: readonly Route[]): Placed {
  const crossing = new Map<string, Route[]>()
  for (const route of routes)
    for (const { column, gap } of route.crossings)
      crossing.set(`${column} ${gap}`, [...(crossing.get(`${column} ${gap}`) ?? []), route])
  const gapHeight = (column: number, gap: number) =>
    Math.max(boxGap, ((crossing.get(`${column} ${gap}`)?.length ?? 0) + 1) * laneGap)
  const boxByKey = new Map(boxes.map(box => [box.key, box]))
  const columnHeights = columns.map(
    (keys, column) =>
      keys.reduce((sum, key, index) => sum + gapHeight(column, index) + heightOf(boxByKey.get(key)!), 0) +
      gapHeight(column, keys.length),
  )
  const height = Math.max(...columnHeights)
  const gapTops = new Map<string, number>()
  const placed = columns.flatMap((keys, column) => {
    let y = (height - columnHeights[column]!) / 2
    const inColumn = keys.map((key, index) => {
      gapTops.set(`${column} ${index}`, y)
      y += gapHeight(column, index)
      const box = { key, x: 0, y, width: boxWidth, height: heightOf(boxByKey.get(key)!), column }
      y += box.height
      return box
    })
    gapTops.set(`${column} ${keys.length}`, y)
    return inColumn
  })
  const crossingY = (route: Route, column: number) => {
    const { gap } = route.crossings.find(crossed => crossed.column === column)!
    const routes = crossing.get(`${column} ${gap}`)!
    const share = (routes.indexOf(route) + 1) / (routes.length + 1)
    return gapTops.get(`${column} ${gap}`)! + gapHeight(column, gap) * share
  }
  return { boxes: placed, height, crossingY }
}

/** A vertical part of a route in a gutter: the space left of the column with its number. */
type Vertical = { route: Route; gutter: number; from: number; to: number; lane: number }

function drawArrows({ boxes, height, crossingY }: Placed, columnCount: number, routes: readonly Route[]): Layout {
  const boxByKey = new Map(boxes.map(box => [box.key, box]))
  const portY = portsOf(routes, boxByKey)
  const verticals = routes.flatMap(route => verticalsOf(route, boxByKey, portY(route), crossingY))
  const laneCounts = Array.from({ length: columnCount + 1 }, (_, gutter) =>
    assignLanes(verticals.filter(vertical => vertical.gutter === gutter)),
  )
  const gutterWidths = laneCounts.map(lanes =>
    lanes === 0 ? gutterPadding : 2 * gutterPadding + (lanes - 1) * laneGap,
  )
  const gutterX = (gutter: number) =>
    gutterWidths.slice(0, gutter).reduce((sum, width) => sum + width, 0) + gutter * boxWidth
  for (const box of boxes) box.x = gutterX(box.column) + gutterWidths[box.column]!
  const arrows = routes.map(route => {
    const source = boxByKey.get(route.source)!
    const target = boxByKey.get(route.target)!
    const startX = leavesLeft(route) ? source.x : source.x + boxWidth
    const endX = entersLeft(route) ? target.x : target.x + boxWidth
    const own = verticals.filter(vertical => vertical.route === route)
    const turns = own.flatMap(({ gutter, from, to, lane }) => {
      const x = gutterX(gutter) + gutterPadding + lane * laneGap
      return [
        { x, y: from },
        { x, y: to },
      ]
    })
    const points = [{ x: startX, y: rowY(source, route.row) }, ...turns, { x: endX, y: portY(route) }]
    return { source: route.source, row: route.row, target: route.target, points }
  })
  return { width: gutterX(columnCount) + gutterWidths[columnCount]!, height, boxes, arrows }
}

const leavesLeft = ({ from, to }: Route) => to < from
/** A link within a column leaves and enters on the right. */
const entersLeft = ({ from, to }: Route) => to > from

/** The point where each route ends. The arrows at one side of a box share its header. */
function portsOf(routes: readonly Route[], boxes: ReadonlyMap<string, PlacedBox>): (route: Route) => number {
  const sides = Map.groupBy(routes, route => `${entersLeft(route) ? 'left' : 'right'} ${route.target}`)
  const ports = new Map<Route, number>()
  for (const side of sides.values()) {
    const ordered = side.toSorted(
      (one, other) => rowY(boxes.get(one.source)!, one.row) - rowY(boxes.get(other.source)!, other.row),
    )
    for (const [index, route] of ordered.entries())
      ports.set(route, boxes.get(route.target)!.y + (headerHeight * (index + 1)) / (ordered.length + 1))
  }
  return route => ports.get(route)!
}

function verticalsOf(
  route: Route,
  boxes: ReadonlyMap<string, PlacedBox>,
  endY: number,
  crossingY: Placed['crossingY'],
): Vertical[] {
  const heights = [
    rowY(boxes.get(route.source)!, route.row),
    ...route.crossings.map(({ column }) => crossingY(route, column)),
    endY,
  ]
  const first = leavesLeft(route) ? route.from : route.from + 1
  const step = leavesLeft(route) ? -1 : 1
  return heights
    .slice(1)
    .map((to, index) => ({ route, gutter: first + index * step, from: heights[index]!, to, lane: 0 }))
}

/** Gives verticals that overlap different lanes. Returns the number of lanes. */
function assignLanes(verticals: Vertical[]): number {
  const ends: number[] = []
  const topOf = ({ from, to }: Vertical) => Math.min(from, to)
  for (const vertical of verticals.toSorted((one, other) => topOf(one) - topOf(other))) {
    const free = ends.findIndex(end => end + laneGap < topOf(vertical))
    vertical.lane = free === -1 ? ends.length : free
    ends[vertical.lane] = Math.max(vertical.from, vertical.to)
  }
  return ends.length
}

/** The path of an arrow in the syntax of SVG, with round corners. */
export function pathOf(points: readonly Point[]): string {
  const radius = 6
  const shift = (from: Point, to: Point, distance: number): Point => {
    const length = Math.hypot(to.x - from.x, to.y - from.y)
    const share = length === 0 ? 0 : Math.min(distance, length / 2) / length
    return { x: from.x + (to.x - from.x) * share, y: from.y + (to.y - from.y) * share }
  }
  const show = ({ x, y }: Point) => `${x.toFixed(1)} ${y.toFixed(1)}`
  const corners = points.slice(1, -1).map((corner, index) => {
    const before = shift(corner, points[index]!, radius)
    const after = shift(corner, points[index + 2]!, radius)
    return `L ${show(before)} Q ${show(corner)} ${show(after)}`
  })
  return [`M ${show(points[0]!)}`, ...corners, `L ${show(points.at(-1)!)}`].join(' ')
}
