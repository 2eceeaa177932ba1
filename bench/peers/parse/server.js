import { once } from 'node:events'
import { createServer } from 'node:http'
import express from 'express'
import { ParseServer } from 'parse-server'

const app = express()
const server = createServer(app)
server.listen(0, '127.0.0.1')
await once(server, 'listening')
const address = `http://127.0.0.1:${server.address().port}`
// Parse Server reads neither a socket folder nor an escaped password from the URL.
const url = new URL(process.env.DATABASE_URL)
const host = url.searchParams.get('host') ?? url.hostname
const parse = new ParseServer({
  databaseURI: process.env.DATABASE_URL,
  databaseOptions: { host, password: decodeURIComponent(url.password) },
  appId: 'bench',
  masterKey: process.env.MASTER_KEY,
  masterKeyIps: ['127.0.0.1'],
  serverURL: `${address}/parse`,
  silent: true,
  logsFolder: null,
})
await parse.start()
app.use('/parse', parse.app)
process.stdout.write(`ready at ${address}\n`)
