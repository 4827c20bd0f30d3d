import t from 'tap'
import { Surveys } from '../../../src/channels/broker/surveys.js'

t.test('a survey ends when every worker has responded once', async t => {
  const surveys = new Surveys()
  const done = []
  const number = surveys.start(['a', 'b'], null, answers => done.push(answers))
  surveys.answered(number, 'a', '1')
  surveys.answered(number, 'a', '1')
  surveys.answered(number, 'c', '3')
  surveys.answered(number + 1, 'b', '2')
  t.same(done, [])
  surveys.answered(number, 'b', '2')
  t.same(done, [['1', '2']])
  surveys.answered(number, 'b', '2')
  t.equal(done.length, 1)
})

t.test('a survey skips an exited worker and fails with a failed one', async t => {
  const surveys = new Surveys()
  const done = []
  const note = answers => done.push(answers)
  const number = surveys.start(['a', 'b', 'c'], null, note)
  surveys.answered(number, 'a', '1')
  surveys.removeWorker('b')
  t.same(done, [])
  surveys.answered(number, 'c', '')
  t.same(done, [null])

  surveys.start(['a'], null, note)
  surveys.removeWorker('a')
  t.same(done[1], [])
})

t.test('a survey without all responses fails after five seconds', async t => {
  const surveys = new Surveys()
  const done = []
  const number = surveys.start(['a', 'b'], null, answers => done.push(answers))
  surveys.answered(number, 'a', '1')
  for (let second = 0; second < 5; second++) surveys.tick()
  t.same(done, [])
  surveys.tick()
  t.same(done, [null])
  surveys.answered(number, 'b', '2')
  t.equal(done.length, 1, 'a late answer is dropped')
})

t.test('failAll() fails all open surveys once', async t => {
  const surveys = new Surveys()
  const done = []
  for (const name of ['a', 'b']) surveys.start([name], null, answers => done.push([name, answers]))
  surveys.failAll()
  surveys.failAll()
  t.same(done, [
    ['a', null],
    ['b', null],
  ])
})
