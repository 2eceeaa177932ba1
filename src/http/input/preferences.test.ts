import { describe, expect, it } from 'vitest'
import { chooseMediaType } from './preferences.ts'

const offered = ['application/x-ndjson', 'text/event-stream']

describe('the Accept header', () => {
  it.each([
    [undefined, undefined],
    ['', undefined],
    ['*/*', undefined],
    ['application/json', undefined],
    ['text/html, */*;q=0.8', undefined],
    ['application/x-ndjson', 'application/x-ndjson'],
    ['Application/X-NDJSON; charset=utf-8', 'application/x-ndjson'],
    ['text/event-stream', 'text/event-stream'],
    ['text/event-stream, */*', 'text/event-stream'],
    ['*/*, text/event-stream', undefined],
    ['*/*;q=0.1, text/event-stream', 'text/event-stream'],
    ['text/event-stream;q=0.5, application/x-ndjson;q=0.6', 'application/x-ndjson'],
    ['text/event-stream;q=0.5, application/json', undefined],
    ['text/event-stream;q=0', undefined],
    ['text/event-stream;q=2', undefined],
    ['text/html', undefined],
  ])('%j selects %j, where undefined is JSON', (accept, expected) => {
    expect(chooseMediaType(accept, offered)).toBe(expected)
  })

  it('selects JSON where nothing else is offered', () => {
    expect(chooseMediaType('text/event-stream', [])).toBeUndefined()
  })
})
