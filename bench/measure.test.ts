import { expect, it } from 'vitest'
import { median, parsePgbench, parseWrk, percentile } from './measure.ts'

it('takes the mean of the two middle figures as the median of an even number', () => {
  expect([median([3, 1, 2]), median([4, 1, 3, 2]), median([7])]).toEqual([2, 2.5, 7])
})

it('takes a value as a percentile, not a figure between two', () => {
  const values = Array.from({ length: 200 }, (_, n) => 200 - n)
  expect([percentile(values, 0.5), percentile(values, 0.99), percentile([7], 0.99)]).toEqual([100, 198, 7])
  expect(percentile([], 0.5)).toBeNaN()
})

const pgbench = `number of failed transactions: 0 (0.000%)
latency average = 1.234 ms
initial connection time = 20.1 ms
tps = 12345.678901 (without initial connection time)
`

it('parses the output of pgbench, and rejects it if a transaction failed', () => {
  expect(parsePgbench(pgbench)).toEqual({ rate: 12345.678901, p50Ms: 1.234, p99Ms: undefined })
  expect(() => parsePgbench(pgbench.replace('transactions: 0', 'transactions: 3'))).toThrow('no figures')
  expect(() => parsePgbench('connection refused')).toThrow('no figures')
})

const wrk = (refused: number, broken: number) =>
  `Running 3s test\n{"requests":3000,"duration":1500000,"p50":900,"p99":4200,"refused":${refused},"broken":${broken}}\n`

it('parses the output of wrk, and rejects it if a request was unsuccessful', () => {
  expect(parseWrk(wrk(0, 0))).toEqual({ rate: 2000, p50Ms: 0.9, p99Ms: 4.2 })
  expect(() => parseWrk(wrk(1, 0))).toThrow('1 responses were unsuccessful')
  expect(() => parseWrk(wrk(0, 2))).toThrow('2 requests got no response')
})
