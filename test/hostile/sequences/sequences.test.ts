import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Service, startService } from '../../support/service.ts'
import { fuzzSeed } from '../seed.ts'
import { createSender, type Sender } from '../sender.ts'
import { command } from './commands.ts'
import { replay, settle, tenantOf } from './replay.ts'
import { copyTemplate, makeTemplate } from './tenants.ts'

const lanesAtOnce = 8
const sequencesALane = 130

let service: Service
let sender: Sender
let templateId: number
beforeAll(async () => {
  service = await startService()
  sender = createSender(service)
  templateId = await makeTemplate(service)
})
afterAll(async () => {
  sender.close()
  await service.stop()
})

test('two organizations are, after every sequence of requests, what the specification makes of it', {
  timeout: 300_000,
}, async () => {
  const seed = fuzzSeed()
  let sequences = 0
  let commands = 0
  const sequence = fc.array(command, { minLength: 1, maxLength: 30, size: 'max' })
  const lanes = Array.from({ length: lanesAtOnce }, (_, lane) =>
    fc.assert(
      fc.asyncProperty(sequence, async steps => {
        const made = [await copyTemplate(service, templateId), await copyTemplate(service, templateId)]
        const tenants = made.map(one => tenantOf(service, sender, one))
        for (const step of steps) await replay(tenants[step.organization]!, step)
        for (const tenant of tenants) await settle(tenant)
        sequences += 1
        commands += steps.length
      }),
      { seed: seed + lane, numRuns: sequencesALane },
    ),
  )
  const ended = await Promise.allSettled(lanes)
  console.log(`sequences: ${sequences} of ${commands} requests by two organizations, KITH_FUZZ_SEED=${seed}`)
  for (const end of ended) if (end.status === 'rejected') throw end.reason
  expect(sequences).toBeGreaterThanOrEqual(1_000)
})
