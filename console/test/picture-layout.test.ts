import { describe, expect, it } from 'vitest'
import { type Box, boxWidth, headerHeight, type Layout, layOut, type Point } from '../src/schema/picture-layout.ts'

/** A schema of this number of stacks, in which each stack links to people, to an earlier stack or to itself. */
function boxesOf(count: number): Box[] {
  let state = 11
  const random = (max: number) => {
    state = (state * 48_271) % 2_147_483_647
    return state % max
  }
  const stacks = Array.from({ length: count }, (_, index): Box => {
    const targets = [
      'people',
      ...(index > 0 ? [`stack${random(index)}`, `stack${random(index)}`] : []),
      `stack${index}`,
    ]
    const links = targets.filter(() => random(3) > 0).map((target, row) => ({ row, target }))
    return { key: `stack${index}`, rows: links.length + random(6), links }
  })
  return [{ key: 'people', rows: 4, links: [{ row: 0, target: 'people' }] }, ...stacks]
}

type Rectangle = { x: number; y: number; width: number; height: number }

/** Whether the straight part between two points enters the inside of a box. */
function crosses(from: Point, to: Point, { x, y, width, height }: Rectangle): boolean {
  const [left, right] = [Math.min(from.x, to.x), Math.max(from.x, to.x)]
  const [top, bottom] = [Math.min(from.y, to.y), Math.max(from.y, to.y)]
  return left < x + width - 1 && right > x + 1 && top < y + height - 1 && bottom > y + 1
}

const crossed = ({ boxes, arrows }: Layout) =>
  arrows.flatMap(({ source, target, points }) =>
    points
      .slice(1)
      .flatMap((to, index) => boxes.filter(box => crosses(points[index]!, to, box)))
      .map(box => `${source} → ${target} crosses ${box.key}`),
  )

describe.each([1, 5, 12, 30, 60])('the picture of %i stacks', count => {
  const boxes = boxesOf(count)
  const layout = layOut(boxes, 'people')

  it('has each box and each link once, inside of its frame', () => {
    expect(layout.boxes.map(({ key }) => key).toSorted()).toEqual(boxes.map(({ key }) => key).toSorted())
    const links = boxes.flatMap(({ key, links }) => links.map(({ row, target }) => `${key} ${row} ${target}`))
    expect(layout.arrows.map(({ source, row, target }) => `${source} ${row} ${target}`).toSorted()).toEqual(
      links.toSorted(),
    )
    for (const { x, y } of [...layout.arrows.flatMap(({ points }) => points), ...layout.boxes]) {
      expect(x).toBeGreaterThanOrEqual(0)
      expect(x).toBeLessThanOrEqual(layout.width)
      expect(y).toBeGreaterThanOrEqual(0)
      expect(y).toBeLessThanOrEqual(layout.height)
    }
  })

  it('has no boxes that overlap, and no arrow that crosses a box', () => {
    const overlaps = layout.boxes.flatMap((box, index) =>
      layout.boxes
        .slice(index + 1)
        .filter(other => crosses(box, { x: box.x + box.width, y: box.y + box.height }, other)),
    )
    expect(overlaps).toEqual([])
    expect(crossed(layout)).toEqual([])
  })

  it('begins each arrow at a side of its own row, and ends it at the header of its target', () => {
    const boxByKey = new Map(layout.boxes.map(box => [box.key, box]))
    for (const { source, target, points } of layout.arrows) {
      const [from, to] = [boxByKey.get(source)!, boxByKey.get(target)!]
      expect([from.x, from.x + boxWidth]).toContain(points[0]!.x)
      expect(points[0]!.y).toBeGreaterThan(from.y + headerHeight)
      expect([to.x, to.x + boxWidth]).toContain(points.at(-1)!.x)
      expect(points.at(-1)!.y).toBeGreaterThan(to.y)
      expect(points.at(-1)!.y).toBeLessThan(to.y + headerHeight)
    }
  })
})
