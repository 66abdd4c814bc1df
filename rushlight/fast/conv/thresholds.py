"""Measured numbers of the ways of convolution: from when on each is the fastest, and how much it
does at a time.

Times are of one core of a Cascade Lake Xeon with AVX-512, float32: benchmarks/convolution.py.
"""

# -- all compiled loops
MIN_PRODUCTS = 1 << 17  # 1 x 16 x 16 x 16 and 16 filters: loops take 33 us, im2col 55
IM2COL_PRODUCTS_PER_SECOND = 2e10  # by which the JIT budget is charged; measured 1e10 to 3e10

# -- the bias' gradient
BIAS_GRAD_MIN_FLOATS = 1 << 15  # from which it is worth a compiled loop

# -- index_table: no loops, a table of all indices
TABLE_COLUMNS = 1 << 14  # most floats in the columns for which the table is the fastest
TABLE_PLAIN_COLUMNS = (
    1 << 16
)  # the same where columns are the images: 8 x 16 x 14 x 14 in 15 us, not 39
TABLE_FILTERS = 64  # most filters in a group for which loops are not worth their call

# -- one_by_one: a product of matrices for each image
ONE_BY_ONE_MIN_PRODUCTS = 1 << 20  # in an image, for one product to be worth its call

# -- winograd
WINOGRAD_MIN_CHANNELS = 16  # on either side: fewer do not fill a vector
WINOGRAD_MIN_TILES = 64  # with fewer, to transform the filters takes longer than it saves
WINOGRAD_MIN_TILES_LARGE = 130  # the same for filters that no cache holds
WINOGRAD_LARGE_FILTERS = 1 << 17  # channels times filters that no cache holds
WINOGRAD_TILES = 72  # most tiles multiplied at a time, so that they stay in the L2 cache
WINOGRAD_TILE_FLOATS = 1 << 18  # most floats of transformed tiles that stay in the L2 cache
WINOGRAD_SUM_TILES = 1 << 12  # tiles whose weight gradients are summed one after the other

# -- whole_batch_im2col: the columns of all images in one product
WHOLE_BATCH_FILTERS = 1 << 19  # least floats in filters that no cache of a core holds
WHOLE_BATCH_FILTERS_ONE_TAP = 1 << 17  # the same with one tap, where columns cost nothing
WHOLE_BATCH_RESULTS = 1 << 10  # most places of results of all images: making columns pays
WHOLE_BATCH_FILTERS_PER_RESULT = 1 << 11  # least floats in smaller filters for each place

# -- batch_innermost
INNERMOST_CHANNELS = 24  # most in a group, on either side: of more, vectors of channels are as good
INNERMOST_CHANNEL_PAIRS = 200  # most channels x filters: 16 x 16 are no faster, 1 x 32 slower
INNERMOST_MAX_DOT = 512  # longest dot product (channels x taps) that is summed without a break
INNERMOST_IMAGE_FLOATS = 1 << 17  # most floats of a vector of images: they stay in the L2 cache
INNERMOST_SUM_PLACES = 1 << 11  # places whose weight gradients are summed one after the other
INNERMOST_BLOCK_VECTORS = 32  # most vectors of sums in a block

# -- indirect
INDIRECT_MIN_CHANNELS = 16  # of the result: fewer do not fill a vector
INDIRECT_IMAGE_FLOATS = 1 << 16  # most floats of images that are laid out at a time
INDIRECT_SUM_PLACES = 1 << 14  # places whose weight gradients are summed one after the other

# -- direct
DIRECT_VECTOR_PLACES = 512  # of small images so many places together, for vectors to be full
DIRECT_TILE_PLACES = 1152  # most places whose sums are made for one tile of filters after the other
DIRECT_SOURCE_FLOATS = 1 << 17  # most floats of the source that stay in the L2 cache meanwhile
