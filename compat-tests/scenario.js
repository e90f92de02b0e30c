// What the scenario scripts in JavaScript share: functions that get a broker's address and throw where it disappoints.
// One line a test on standard output, as suite.py tells; names in COMPAT_TESTS (a line each) choose some.
'use strict'

const { deepStrictEqual } = require('node:assert')
const { randomBytes } = require('node:crypto')

const TIMEOUT_MS = 60000

exports.unique = what => `compat-${what}-${randomBytes(4).toString('hex')}`

exports.expect = (actual, expected, what) => deepStrictEqual(actual, expected, `${what}: expected ${JSON.stringify(expected)}, got ${JSON.stringify(actual)}`)

exports.until = async (done, what, timeoutMs = 30000) => {
  const deadline = Date.now() + timeoutMs
  while (!(await done())) {
    if (Date.now() > deadline) throw new Error(`not within ${timeoutMs / 1000} s: ${what}`)
    await new Promise(resolve => setTimeout(resolve, 50))
  }
}

function withinTime (promise) {
  let timer
  const late = new Promise((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`still running after ${TIMEOUT_MS / 1000} s`)), TIMEOUT_MS)
  })
  return Promise.race([promise, late]).finally(() => clearTimeout(timer))
}

// What an error says, and those within it.
const told = error => [error.message || String(error), ...(error.errors || []).map(told)].join(': ')

exports.main = async scenarios => {
  const address = process.env.BOOTSTRAP_SERVERS
  const chosen = (process.env.COMPAT_TESTS || '').split('\n').filter(Boolean)
  for (const [name, scenario] of Object.entries(scenarios)) {
    if (chosen.length && !chosen.includes(name)) continue
    const began = Date.now()
    let fault
    try {
      await withinTime(scenario(address))
    } catch (error) {
      fault = error
    }
    console.log(`${fault ? 'FAILED' : 'ok'} ${name} (${((Date.now() - began) / 1000).toFixed(1)} s)`)
    if (fault) console.log(`       ${told(fault).split('\n').slice(0, 4).join('\n       ')}`)
  }
  process.exit(0) // what a failed scenario left open does not hold up the end
}
