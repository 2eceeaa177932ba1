import { expect, it } from 'vitest'
import { createPrettifier } from './pretty-log.ts'

const prettify = createPrettifier({ colors: false })
/** The formatted entry without its time. */
const format = (entry: object) =>
  prettify(JSON.stringify({ level: 30, time: 0, ...entry })).replace(/^\[[\d:.]+\] /, '')

it('puts method, route, status and time of a request into its message, and keeps the rest', () => {
  const request = {
    request_id: 'r',
    method: 'GET',
    route: '/v1/people/{external_id}',
    duration_ms: 1.5,
    msg: 'request',
  }
  expect(format({ ...request, status: 404, organization: 'acme' })).toBe(
    'INFO: GET /v1/people/{external_id} 404 in 1.5 ms {"request_id":"r","organization":"acme"}\n',
  )
  expect(format({ ...request, aborted: true })).toBe(
    'INFO: GET /v1/people/{external_id} aborted in 1.5 ms {"request_id":"r"}\n',
  )
})

it('shows all members of other entries, even if they are named as those of a request', () => {
  expect(format({ level: 40, status: 'odd', method: 'm', msg: 'look' })).toBe(
    'WARN: look {"status":"odd","method":"m"}\n',
  )
})

it('shows a stack trace line by line, with and without a message', () => {
  const stack = 'Error: broken\n    at somewhere'
  expect(format({ level: 50, fault: 'Error', stack })).toBe(`ERROR: ${stack} {"fault":"Error"}\n`)
  expect(format({ level: 60, stack, msg: 'the process ends' })).toBe(`FATAL: the process ends\n${stack}\n`)
})
