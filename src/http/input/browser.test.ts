import { expect, it } from 'vitest'
import { readSessionCookies, sessionCookie } from './browser.ts'

it('names the cookie of a session over TLS so that no other host of the domain can set it', () => {
  expect(sessionCookie('t', { maxAgeSeconds: 60, isSecure: true })).toBe(
    '__Host-kith_session=t; Path=/; Max-Age=60; HttpOnly; SameSite=Strict; Secure',
  )
  expect(sessionCookie('t', { maxAgeSeconds: 60, isSecure: false })).toMatch(/^kith_session=t; Path=\/;/)
})

it('reads the cookie that no other host can set, and the other one only without it', () => {
  expect(readSessionCookies('kith_session=planted; __Host-kith_session=own; a=b')).toEqual(['own'])
  expect(readSessionCookies('a=b; kith_session=plain')).toEqual(['plain'])
  expect(readSessionCookies('x__Host-kith_session=a; xkith_session=b')).toEqual([])
})
