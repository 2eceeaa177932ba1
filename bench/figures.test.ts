import { expect, it } from 'vitest'
import { isWithin, medianSide, type Side } from './figures.ts'
import { rows } from './rows.ts'

const side = (rate: number, p50Ms: number, p99Ms: number | undefined, serviceMb: number): Side => ({
  rate,
  p50Ms,
  p99Ms,
  usage: { service: 90, postgres: 40, generator: 20, serviceMb, servicePeakMb: serviceMb + 10 },
})

it('takes the median of each figure separately', () => {
  const sides = [side(100, 3, 9, 80), side(300, 1, 7, 90), side(200, 2, 30, 70)]
  expect(medianSide(sides)).toEqual(side(200, 2, 9, 80))
  expect(medianSide([side(100, 3, undefined, 80)]).p99Ms).toBeUndefined()
})

it('treats the bound as a minimum for rates, and as a maximum for latencies and for the slowdown by size', () => {
  const within = (name: string, ratio: number) => isWithin(rows.find(row => row.name === name)!, ratio, 1)
  expect([within('patch', 0.9), within('patch', 1)]).toEqual([false, true])
  expect([within('alone', 1.1), within('alone', 1)]).toEqual([false, true])
  expect([within('small', 1.1), within('small', 1)]).toEqual([false, true])
})
