import { expect, it } from 'vitest'
import { createTokenCache, ownTokenSeconds } from './token-cache.ts'

const minuteMs = 60_000

it('renews a token after half of its lifetime, and keeps it until its end if that fails', async () => {
  let made = 0
  let isDatabaseUp = true
  let now = 0
  const readToken = createTokenCache(
    async () => {
      if (!isDatabaseUp) throw new Error('the database is stopped')
      made += 1
      return `token ${made}`
    },
    () => now,
  )
  const readAt = (minutes: number) => {
    now = minutes * minuteMs
    return readToken()
  }
  expect(ownTokenSeconds).toBe(3_600)
  expect(await readAt(0)).toBe('token 1')
  expect(await readAt(30)).toBe('token 1')
  expect(await readAt(31)).toBe('token 2')
  isDatabaseUp = false
  expect(await readAt(90)).toBe('token 2')
  await expect(readAt(91)).rejects.toThrow('the database is stopped')
  isDatabaseUp = true
  expect(await readAt(92)).toBe('token 3')
})

it('throws if the first token cannot be made', async () => {
  const readToken = createTokenCache(() => Promise.reject(new Error('the database is stopped')))
  await expect(readToken()).rejects.toThrow('the database is stopped')
})
