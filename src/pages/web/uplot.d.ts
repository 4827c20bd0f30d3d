// The page that uses these modules puts uPlot's own ES module beside them.
import uPlot from 'uplot'
export default uPlot
