import { expect, it } from 'vitest'
import { pendingCookie, readCookies, sessionCookie } from './browser.ts'

it('names cookies over TLS so that no other host of the domain can set them', () => {
  const secure = { maxAgeSeconds: 60, isSecure: true }
  expect(sessionCookie('t', secure)).toBe(
    '__Host-kith_session=t; Path=/; Max-Age=60; HttpOnly; SameSite=Strict; Secure',
  )
  expect(pendingCookie('t', secure)).toBe('__Host-kith_sign_in=t; Path=/; Max-Age=60; HttpOnly; SameSite=Lax; Secure')
  expect(sessionCookie('t', { ...secure, isSecure: false })).toMatch(/^kith_session=t; Path=\/;/)
})

it('reads over TLS only cookies that no other host can set', () => {
  const both = 'kith_session=planted; __Host-kith_session=own; a=b'
  expect(readCookies(both, 'kith_session', true)).toEqual(['own'])
  expect(readCookies('a=b; kith_session=planted', 'kith_session', true)).toEqual([])
  expect(readCookies('kith_sign_in=planted', 'kith_sign_in', true)).toEqual([])
  expect(readCookies('a=b; kith_session=plain', 'kith_session', false)).toEqual(['plain'])
  expect(readCookies('x__Host-kith_session=a; xkith_session=b', 'kith_session', true)).toEqual([])
})
