import { chown, mkdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { urlOfDatabase } from '../../src/db/embedded.ts'
import { query } from '../support/embedded-service.ts'
import { endProcesses, type Kith, launch, senderTo } from '../support/process.ts'
import { check, formatFindings } from './checker.ts'
import { resolveUnknownOutcomes, startLoad } from './load.ts'
import { type OwnPostgres, startOwnPostgres } from './own-postgres.ts'
import { lastErrors, printRound } from './report.ts'
import { rounds } from './rounds.ts'
import { fillDisk, fillerOf, mountDisk, unmountDisk } from './small-disk.ts'
import { makeWorld } from './world.ts'

let postgres: OwnPostgres
let disk: string
let url: string
let kith: Kith
let address: string
beforeAll(async () => {
  postgres = await startOwnPostgres()
  disk = join(postgres.path, 'disk')
  await mkdir(disk)
  await mountDisk(disk, 48)
  const { uid, gid } = await stat(join(postgres.path, 'data'))
  await chown(disk, uid, gid)
  await query(postgres.url, `create tablespace small location '${disk}'`)
  await query(postgres.url, 'create database small tablespace small')
  url = urlOfDatabase(postgres.url, 'small')
  kith = launch({ DATABASE_URL: url, LOG_LEVEL: 'warn' })
  address = await kith.ready
})
afterAll(async () => {
  for (const { child, ended } of kith ? [kith] : []) {
    child.kill('SIGKILL')
    await ended
  }
  await postgres.stop()
  await unmountDisk(disk)
  await endProcesses()
})

const minRefused = 30
const maxRecoveryMs = 5_000

describe('a database on a full disk', () => {
  it.each(rounds(5))(
    'serves reads, returns 503 for writes, and accepts writes once there is space: round %i',
    async round => {
      const world = await makeWorld(url, address)
      const send = senderTo(address, (await makeWorld(url, address)).token)
      await send('POST', '/v1/people', { external_id: 'reader' })
      const refused: (string | null)[] = []
      const messages = new Set<string | undefined>()
      const otherStatuses: number[] = []
      const load = startLoad({
        world,
        addresses: [address],
        seedParts: ['disk', round],
        onAnswer: (entry, reply) => {
          if (typeof reply !== 'object' || reply.status < 500 || reply.body.error === 'not_found') return
          messages.add(reply.body.message)
          if (entry.status === 503) refused.push(reply.headers.get('Retry-After'))
          else otherStatuses.push(entry.status)
        },
      })
      await load.waitForAcknowledged(50)
      await fillDisk(disk)
      const readiness = async () => {
        const response = await fetch(`${address}/readyz`)
        return [response.status, ((await response.json()) as { message?: string }).message]
      }
      const reads: number[] = []
      const notReady: unknown[] = []
      while (refused.length < minRefused) {
        reads.push((await send('GET', '/v1/people/reader')).status)
        reads.push((await send('POST', '/v1/people/list', {})).status)
        // Deletions and autovacuum free space, so the disk is filled again.
        await fillDisk(disk)
        notReady.push(await readiness())
        await setTimeout(20)
      }
      await rm(fillerOf(disk))
      const spaceFreedAt = performance.now()
      expect(await readiness()).toEqual([200, undefined])
      await load.waitForAcknowledged(30)
      const recoveryMs = performance.now() - spaceFreedAt
      await load.stop()
      await resolveUnknownOutcomes({ journal: load.journal, world, address })
      printRound('disk full', round, { refused: refused.length, reads: reads.length, recoveryMs }, load.journal)
      expect(formatFindings(await check(world, load.journal, address)), lastErrors(kith)).toEqual([])
      expect(notReady).toContainEqual([503, 'The database has no disk space left.'])
      expect(new Set(reads)).toEqual(new Set([200]))
      expect(new Set(refused)).toEqual(new Set(['1']))
      expect(otherStatuses).toEqual([])
      expect(messages).toContain('The database has no disk space left.')
      const logLines = kith.output.stdout.split('\n').filter(line => line.includes('no disk space left'))
      expect(logLines.length, logLines.join('\n')).toBeGreaterThan(0)
      expect(logLines.length).toBeLessThanOrEqual(round)
      expect(kith.output.stdout).not.toContain('53100')
      expect(recoveryMs).toBeLessThan(maxRecoveryMs)
    },
  )
})
