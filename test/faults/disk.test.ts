import { chown, mkdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { urlOfDatabase } from '../../src/db/embedded.ts'
import { query } from '../support/embedded-service.ts'
import { endProcesses, type Kith, launch, senderTo } from '../support/process.ts'
import { check, linesOf } from './checker.ts'
import { settleKeyed, startLoad } from './load.ts'
import { type OwnPostgres, startOwnPostgres } from './own-postgres.ts'
import { lastFaults, tell } from './report.ts'
import { rounds } from './rounds.ts'
import { fill, fillerOf, mountDisk, unmountDisk } from './small-disk.ts'
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

const enoughRefused = 30
const recoveredWithinMs = 5_000

describe('a database without room on its disk', () => {
  it.each(rounds(5))('goes on reading, is 503 for writes, and takes them when there is room: round %i', async round => {
    const world = await makeWorld(url, address)
    const send = senderTo(address, (await makeWorld(url, address)).token)
    await send('POST', '/v1/people', { external_id: 'reader' })
    const refused: (string | null)[] = []
    const messages = new Set<string | undefined>()
    const faults: number[] = []
    const load = startLoad({
      world,
      addresses: [address],
      words: ['disk', round],
      onAnswer: (entry, reply) => {
        if (typeof reply !== 'object' || reply.status < 500 || reply.body.error === 'not_found') return
        messages.add(reply.body.message)
        if (entry.status === 503) refused.push(reply.headers.get('Retry-After'))
        else faults.push(entry.status)
      },
    })
    await load.acknowledged(50)
    await fill(disk)
    const reads: number[] = []
    while (refused.length < enoughRefused) {
      reads.push((await send('GET', '/v1/people/reader')).status)
      reads.push((await send('POST', '/v1/people/list', {})).status)
      // What is deleted and vacuumed meanwhile leaves room again.
      await fill(disk)
      await setTimeout(20)
    }
    await rm(fillerOf(disk))
    const roomAgain = performance.now()
    await load.acknowledged(30)
    const recoveryMs = performance.now() - roomAgain
    await load.stop()
    await settleKeyed({ journal: load.journal, world, address })
    tell('disk full', round, { refused: refused.length, reads: reads.length, recoveryMs }, load.journal)
    expect(linesOf(await check(world, load.journal, address)), lastFaults(kith)).toEqual([])
    expect(new Set(reads)).toEqual(new Set([200]))
    expect(new Set(refused)).toEqual(new Set(['1']))
    expect(faults).toEqual([])
    expect(messages).toContain('The database has no disk space left.')
    const told = kith.output.stdout.split('\n').filter(line => line.includes('no disk space left'))
    expect(told.length, told.join('\n')).toBeGreaterThan(0)
    expect(told.length).toBeLessThanOrEqual(round)
    expect(kith.output.stdout).not.toContain('53100')
    expect(recoveryMs).toBeLessThan(recoveredWithinMs)
  })
})
